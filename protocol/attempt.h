#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/trial_directory.h"

namespace petlab::protocol {

/// How an attempt ended. finished and failed come from the worker's last event (failed also from
/// events that break the protocol); the others are observed by an orchestrator. A late finished or
/// failed replaces an observed outcome, never the reverse.
enum class Outcome {
  open,           ///< not known to be over
  finished,       ///< the worker's event
  failed,         ///< the worker's event, or a broken protocol (`kind`)
  crashed,        ///< the worker died before its last event
  never_started,  ///< the worker died before this trial's `started`; counts against the launch
  timed_out,      ///< over the trial's time limit
  stalled,        ///< over the no-progress limit
  stopped,        ///< stopped on request; can resume from its checkpoint
  cancelled,      ///< the user cancelled the trial
  lost,           ///< declared dead: by the user (`retry --declare-dead`) or by Slurm
};
/// The words in the database and in attempt.jsonl: "open", "finished", ….
std::string_view to_string(Outcome outcome);
std::optional<Outcome> outcome_from(std::string_view text);

/// Which orchestrator starts an attempt, and where. The line `begun` of attempt.jsonl.
struct AttemptBegun {
  std::string trial_id;
  std::optional<Resume> resume;
  std::string sweep;          // the sweep that requested it
  std::string owner;          // a unique id of the orchestrator
  std::string host;           // host of the worker; empty if not known yet (Slurm)
  std::string boot_id;        // /proc/sys/kernel/random/boot_id
  std::string pid_namespace;  // readlink /proc/self/ns/pid
  std::string device;         // "cpu:3", "GPU-4f…"
  std::string launcher;       // "local", "slurm"
  std::string commit;         // petlab's version or commit
  /// Number of retries after crashes or stalls before the trial fails (--retries); absent if an
  /// earlier petlab started this attempt.
  std::optional<std::int64_t> retries;
  double time = 0;  // seconds since 1970, UTC
  /// JSON object, may be empty: the petlab that started the attempt, the sweep file, and the
  /// machine if the attempt runs on it (docs/reference/database.md).
  std::string provenance = {};
  bool operator==(const AttemptBegun&) const = default;
};

/// The start of a worker process. The line `launched` of attempt.jsonl.
struct Launch {
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;  // field 22 of /proc/PID/stat: clock ticks after boot
  std::string host;            // if unknown in `begun`; empty: unchanged
  std::string boot_id;
  std::string pid_namespace;
  std::string device;
  std::string job;  // Slurm: "1234_7"
  double time = 0;
  /// JSON object, may be empty: the digests of what the worker runs, as members of the attempt's
  /// provenance (docs/reference/database.md, docs/reference/code.md).
  std::string code = {};
  bool operator==(const Launch&) const = default;
};

/// The end of an attempt as observed by an orchestrator. The line `ended` of attempt.jsonl.
struct Ending {
  /// Any except open and finished. failed only adds data to the worker's event.
  Outcome outcome = Outcome::crashed;
  std::string reason;  // one line of text
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string log_tail;  // last lines of log.txt, valid UTF-8
  double time = 0;
  bool operator==(const Ending&) const = default;
};

}  // namespace petlab::protocol
