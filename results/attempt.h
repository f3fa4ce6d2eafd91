#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/trial_directory.h"

namespace petlab::results {

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

/// Which attempt; `key` is its row in one database and means nothing outside it.
struct AttemptRef {
  std::int64_t key = 0;
  std::string trial_id;
  std::int64_t number = 1;
  bool operator==(const AttemptRef&) const = default;
};

/// Who wants to run a trial, and where. The line `begun` of attempt.jsonl.
struct NewAttempt {
  std::string trial_id;
  /// TrialFacts::changes as they were when the caller decided. Where the database says another
  /// number, something has happened to the trial since, and nothing is claimed.
  std::int64_t planned_from = 0;
  /// The new number is at least this: one above the highest directory of the trial that exists.
  std::int64_t at_least = 1;
  std::optional<protocol::Resume> resume;
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
  bool operator==(const NewAttempt&) const = default;
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

/// The checkpoint that an attempt can be resumed from.
struct CheckpointAt {
  std::int64_t step = 0;
  std::int64_t seq = 0;
  std::string path;  // relative to the attempt's directory
  bool operator==(const CheckpointAt&) const = default;
};

/// Everything that is known of an attempt but its metrics.
struct AttemptFacts {
  AttemptRef attempt;
  NewAttempt begun;  // planned_from and at_least are not kept
  std::optional<Launch> launch;
  Outcome outcome = Outcome::open;
  std::string kind;    // failed: error, out_of_memory, not_finite, protocol
  std::string reason;  // failed, and what an orchestrator saw
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string log_tail;
  std::optional<double> started_at;  // time of the event `started`; absent: none came
  std::optional<double> ended_at;
  std::string worker, worker_version;
  std::string numerics;  // JSON object as text; empty before `started`
  std::string backbone_digest;
  std::map<std::string, std::string> data_digests;
  std::optional<CheckpointAt> checkpoint;   // the last one
  std::optional<double> peak_memory_mib;    // of the machine's memory
  std::optional<double> device_memory_mib;  // the most so far, as the worker reported it
  std::optional<double> train_seconds;
  /// Something odd that did not change the outcome (a line after `finished`).
  std::string note;
};

/// A trial and its attempts, by number.
struct TrialFacts {
  std::string trial_id;
  bool known = false;  // false: the database has never heard of it
  /// How often something has happened to the trial that a plan depends on: an attempt was made,
  /// was over or was forgotten, the user decided. Only grows, so two equal numbers are one state;
  /// what a claim is planned from. 0 where the database was not opened for writing by a petlab
  /// that counts.
  std::int64_t changes = 0;
  bool cancelled = false;
  /// Attempts up to this number do not count against the limit of failures (`petlab retry`).
  std::int64_t retried_after = 0;
  /// The finished attempt that the views follow; absent: none finished.
  std::optional<std::int64_t> result_attempt;
  std::vector<AttemptFacts> attempts;
};

/// What --retries is where nobody said.
constexpr std::int64_t kUsualRetries = 2;

/// Whether a slot is a share of a GPU ("gpu-3.1"), which others may have.
bool is_gpu_share(std::string_view slot);

/// Whether the worker said that it had no memory left.
bool ran_out_of_memory(const AttemptFacts& attempt);
/// An end that no retry changes: the worker said that it failed, or a time limit was reached.
bool is_final_failure(const AttemptFacts& attempt);
/// The attempts that crashed or stalled since the user allowed a retry. Out of memory counts where
/// the trial had its device for itself.
std::int64_t counted_failures(const TrialFacts& facts);
/// How many of those may be retried: what the caller was told, else what the last attempt was
/// begun with, else kUsualRetries.
std::int64_t allowed_retries(const TrialFacts& facts, std::optional<std::int64_t> told = {});
/// Whether a trial that is neither running nor finished has failed: the one definition of `run`,
/// `plan`, `status` and reports.
bool has_failed(const TrialFacts& facts, std::optional<std::int64_t> told = {});

/// The version in the object that a worker's `started` carries ({"version": "1", …}); empty where
/// there is none. Trials whose versions differ have numbers that cannot be compared.
std::string numerics_version(const std::string& numerics);

/// What the user decided on a trial: only trials that are cancelled or were allowed a retry.
struct Decided {
  std::string trial_id;
  bool cancelled = false;
  std::int64_t retried_after = 0;
};

/// The last `progress` of an attempt.
struct ProgressFacts {
  AttemptRef attempt;
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;
  double time = 0;
};

}  // namespace petlab::results
