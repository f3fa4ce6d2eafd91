#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/attempt.h"
#include "protocol/events.h"

namespace petlab::results {

using protocol::Ending;
using protocol::Examples;
using protocol::Launch;
using protocol::Outcome;
using protocol::outcome_from;
using protocol::to_string;

/// Identifies an attempt. `key` is its row in one database and meaningless elsewhere.
struct AttemptRef {
  std::int64_t key = 0;
  std::string trial_id;
  std::int64_t number = 1;
  bool operator==(const AttemptRef&) const = default;
};

/// A requested attempt: its record, and the conditions of the claim.
struct NewAttempt : protocol::AttemptBegun {
  /// TrialFacts::changes when the caller decided. If the database has another value, the trial has
  /// changed since, and the claim fails.
  std::int64_t planned_from = 0;
  /// Minimum of the new number: one above the highest attempt folder of the trial.
  std::int64_t at_least = 1;
  bool operator==(const NewAttempt&) const = default;
};

/// A checkpoint from which an attempt can be resumed.
struct CheckpointAt {
  std::int64_t step = 0;
  std::int64_t seq = 0;
  std::string path;  // relative to the attempt's folder
  bool operator==(const CheckpointAt&) const = default;
};

/// All facts about an attempt except for its metrics.
struct AttemptFacts {
  AttemptRef attempt;
  protocol::AttemptBegun begun;
  std::optional<Launch> launch;
  Outcome outcome = Outcome::open;
  std::string kind;    // failed only: error, out_of_memory, not_finite, device, protocol
  std::string reason;  // of a failure, or as observed by an orchestrator
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string log_tail;
  std::optional<double> started_at;  // time of the event `started`; absent before it
  std::optional<double> ended_at;
  std::string worker, worker_version;
  std::string numerics;  // JSON object; empty before `started`
  std::string backbone_digest;
  std::map<std::string, std::string> data_digests;
  std::optional<CheckpointAt> checkpoint;   // the last one
  std::optional<double> peak_memory_mib;    // host memory
  std::optional<double> device_memory_mib;  // the highest use reported so far
  std::optional<double> train_seconds;
  /// An oddity that did not change the outcome, such as a line after `finished`.
  std::string note;
};

/// The origin of an attempt's numbers: JSON objects as text, with the keys of
/// docs/reference/database.md. AttemptFacts has the host, device and digests.
struct Provenance {
  std::string petlab;  ///< of the petlab that started the attempt
  std::string worker;  ///< as reported by the worker
};

/// A trial with its attempts, by number.
struct TrialFacts {
  std::string trial_id;
  bool known = false;  // false if the trial is not in the database
  /// Counts changes of the trial that affect plans: an attempt was created, ended or was forgotten,
  /// or the user made a decision. Only increases, so equal numbers mean the same state; claims
  /// depend on it. 0 if the database was never opened for writing by a petlab that counts changes.
  std::int64_t changes = 0;
  bool cancelled = false;
  /// Why a rule of its sweep stopped the trial, if that is why it is `cancelled`; else empty.
  std::string stopped_early;
  /// Attempts up to this number do not count against the failure limit (`petlab retry`).
  std::int64_t retried_after = 0;
  /// Results of attempts up to `renewed_after` will be recomputed (`petlab run --rerun`, `petlab
  /// discard`). Those up to `discarded_after` were discarded and do not count.
  std::int64_t renewed_after = 0;
  std::int64_t discarded_after = 0;
  /// The finished attempt whose values count; absent if none finished.
  std::optional<std::int64_t> result_attempt;
  std::vector<AttemptFacts> attempts;
};

/// The default of --retries.
constexpr std::int64_t kUsualRetries = 2;

/// True for a share of a GPU ("gpu-3.1"), whose other shares may be in use.
bool is_gpu_share(std::string_view slot);

/// True if the worker reported out of memory.
bool ran_out_of_memory(const AttemptFacts& attempt);
/// True if the worker reported a failure of its device. This says nothing about the trial, which is
/// retried on another device.
bool device_failed(const AttemptFacts& attempt);
/// True if the worker reported that a gang of trials failed, which may be another trial's fault.
bool failed_with_its_gang(const AttemptFacts& attempt);
/// True for an end that no retry can change: a reported failure, or a time limit.
bool is_final_failure(const AttemptFacts& attempt);
/// The number of attempts that crashed or stalled, or whose device failed, since the last retry
/// decision. Out of memory counts only if the trial had the whole device, a failure of its gang
/// only after another.
std::int64_t counted_failures(const TrialFacts& facts);
/// How many of these failures may be retried: the given limit, else the limit recorded with the
/// last attempt, else kUsualRetries.
std::int64_t allowed_retries(const TrialFacts& facts, std::optional<std::int64_t> retries = {});
/// True if a trial that is neither running nor finished has failed. `run`, `plan`, `status` and
/// reports all use this definition.
bool has_failed(const TrialFacts& facts, std::optional<std::int64_t> retries = {});

/// The version in a worker's numerics ({"version": "1", …}); empty if there is none. Numbers of
/// trials with different versions cannot be compared.
std::string numerics_version(const std::string& numerics);

/// True if the trial has a result that will be recomputed.
bool is_to_renew(const TrialFacts& facts);

}  // namespace petlab::results
