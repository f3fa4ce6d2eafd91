#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/trial_directory.h"

namespace petlab::protocol {

/// How an attempt ended. finished and failed come from the worker's own last event (failed also
/// from events that break the protocol); the rest is what an orchestrator saw. A finished or failed
/// that arrives late replaces what an orchestrator saw, never the other way round.
enum class Outcome {
  open,           ///< not over, as far as is known
  finished,       ///< the worker's event
  failed,         ///< the worker's event, or a broken protocol (`kind`)
  crashed,        ///< the worker died first
  never_started,  ///< the worker died before this trial's `started`; counts against the launch
  timed_out,      ///< over the trial's time limit
  stalled,        ///< over the no-progress limit
  stopped,        ///< asked to stop; goes on from its checkpoint
  cancelled,      ///< the user took the trial out
  lost,           ///< declared dead: by the user (`retry --declare-dead`) or by Slurm
};
/// "open", "finished", …: the words in the database and in attempt.jsonl.
std::string_view to_string(Outcome outcome);
std::optional<Outcome> outcome_from(std::string_view text);

/// Who wants to run a trial, and where. The line `begun` of attempt.jsonl.
struct AttemptBegun {
  std::string trial_id;
  std::optional<Resume> resume;
  std::string sweep;          // name of the sweep for which it runs
  std::string owner;          // which orchestrator: any text that is unique to it
  std::string host;           // name of the machine that runs it; empty: not known yet (Slurm)
  std::string boot_id;        // /proc/sys/kernel/random/boot_id
  std::string pid_namespace;  // readlink /proc/self/ns/pid
  std::string device;         // "cpu:3", "GPU-4f…"
  std::string launcher;       // "local", "slurm"
  std::string commit;         // petlab's own version or commit
  /// Attempts beyond the first that may crash or stall before the trial has failed, as whoever
  /// began this one was told; absent: an earlier petlab, which did not say.
  std::optional<std::int64_t> retries;
  double time = 0;  // seconds since 1970, UTC
  /// JSON object as text, may be empty: which petlab began it, for which sweep file, and the
  /// machine where that is its own (docs/reference/database.md).
  std::string provenance = {};
  bool operator==(const AttemptBegun&) const = default;
};

/// A worker process was given the attempt. The line `launched` of attempt.jsonl.
struct Launch {
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;  // field 22 of /proc/PID/stat: clock ticks after boot
  std::string host;            // where not known at the beginning; empty: unchanged
  std::string boot_id;
  std::string pid_namespace;
  std::string device;
  std::string job;  // Slurm: "1234_7"
  double time = 0;
  bool operator==(const Launch&) const = default;
};

/// What an orchestrator saw of the end. The line `ended` of attempt.jsonl.
struct Ending {
  /// Any but open and finished. failed: only adds its data to what the events say.
  Outcome outcome = Outcome::crashed;
  std::string reason;  // one line for people
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string log_tail;  // last lines of log.txt, valid UTF-8
  double time = 0;
  bool operator==(const Ending&) const = default;
};

}  // namespace petlab::protocol
