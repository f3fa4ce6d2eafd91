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

/// Which attempt; `key` is its row in one database and means nothing outside it.
struct AttemptRef {
  std::int64_t key = 0;
  std::string trial_id;
  std::int64_t number = 1;
  bool operator==(const AttemptRef&) const = default;
};

/// An attempt that is asked for: what is written of it, and what the claim depends on.
struct NewAttempt : protocol::AttemptBegun {
  /// TrialFacts::changes as they were when the caller decided. Where the database says another
  /// number, something has happened to the trial since, and nothing is claimed.
  std::int64_t planned_from = 0;
  /// The new number is at least this: one above the highest directory of the trial that exists.
  std::int64_t at_least = 1;
  bool operator==(const NewAttempt&) const = default;
};

/// The checkpoint that an attempt can be resumed from.
struct CheckpointAt {
  std::int64_t step = 0;
  std::int64_t seq = 0;
  std::string path;  // relative to the attempt's directory
  bool operator==(const CheckpointAt&) const = default;
};

/// Everything that is known of an attempt but its metrics: a plain record, a field a column.
struct AttemptFacts {
  AttemptRef attempt;
  protocol::AttemptBegun begun;
  std::optional<Launch> launch;
  Outcome outcome = Outcome::open;
  std::string kind;    // failed: error, out_of_memory, not_finite, device, protocol
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

/// Where an attempt's numbers come from: JSON objects as text, keys in docs/reference/database.md.
/// Host, device and digests are in AttemptFacts.
struct Provenance {
  std::string petlab;  ///< of who began it
  std::string worker;  ///< as the worker said
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
  /// Results of attempts up to this number are to be made again (`petlab run --rerun`, `petlab
  /// discard`); those up to the second were discarded and count nowhere.
  std::int64_t renewed_after = 0;
  std::int64_t discarded_after = 0;
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
/// True if the worker reported that its device failed: it says nothing about the trial, which is
/// retried on another device.
bool device_failed(const AttemptFacts& attempt);
/// An end that no retry changes: the worker said that it failed, or a time limit was reached.
bool is_final_failure(const AttemptFacts& attempt);
/// The attempts that crashed or stalled, or whose device failed, since a retry was allowed. Out of
/// memory counts where the trial had its device for itself.
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

/// Whether the trial has a result that is to be made again.
bool is_to_renew(const TrialFacts& facts);

}  // namespace petlab::results
