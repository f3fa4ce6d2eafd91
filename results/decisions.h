#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"

namespace petlab::results {

// The user's decisions about trials. All functions throw Error as the methods of Batch and Reader.

/// The user's decisions about a trial that is cancelled or was allowed a retry.
struct Decided {
  std::string trial_id;
  bool cancelled = false;
  std::int64_t retried_after = 0;
  std::int64_t renewed_after = 0;
};

/// A decision to recompute a trial, regardless of its attempts up to `after_attempt`.
struct Renewal {
  std::int64_t after_attempt = 0;
  bool discarded = false;  ///< their results no longer count; otherwise until a later one exists
  std::string why;
  double time = 0;
  bool operator==(const Renewal&) const = default;
};

/// A decision to leave a trial out of reports and answers.
struct Hiding {
  std::string why;
  double time = 0;
  bool operator==(const Hiding&) const = default;
};

/// A decision by a sweep's rule to stop a trial that lost against others.
struct EarlyStop {
  std::int64_t after_attempt = 0;  ///< the attempt that it stopped
  std::int64_t after_step = 0;     ///< of the validation that decided
  std::string why;                 ///< the rule, and the numbers that decided
  double time = 0;
  bool operator==(const EarlyStop&) const = default;
};

/// The user's decisions about a trial's results.
struct ResultDecisions {
  std::vector<Renewal> renewals;  ///< by attempt number
  std::optional<Hiding> hidden;
};

/// Cancels a trial, or takes that back. Throws std::invalid_argument for an unknown trial, as do
/// the next four functions.
void set_cancelled(Batch& batch, const std::string& trial_id, bool cancelled);
/// Stops a trial early; nothing if it is cancelled. A retry lets it continue, a cancellation
/// replaces the stop.
void stop_early(Batch& batch, const std::string& trial_id, const EarlyStop& stop);
/// Allows a retry: attempts up to this one no longer count against the failure limit, and a later
/// finished attempt replaces them in the views.
void allow_retry(Batch& batch, const std::string& trial_id, std::int64_t after_attempt);
/// Does the same even if one of these attempts has finished: the trial can be claimed and is
/// recomputed. An earlier result counts until a later one exists, or no longer if it is discarded.
/// Deletes nothing.
void renew(Batch& batch, const std::string& trial_id, const Renewal& renewal);
/// Hides a trial in the views and answers, or shows it again (no `hiding`).
void set_hidden(Batch& batch, const std::string& trial_id, const std::optional<Hiding>& hiding);

/// Trials that are cancelled, were allowed a retry, or will be recomputed.
std::vector<Decided> decided(const Reader& reader);
/// After which attempts a retry of the trial was allowed, in order.
std::vector<std::int64_t> retries_of(const Reader& reader, const std::string& trial_id);
/// The trials that a rule has stopped, also those that continue since, by id.
std::map<std::string, EarlyStop> early_stops(const Reader& reader);
/// The user's decisions about a trial's results.
ResultDecisions result_decisions(const Reader& reader, const std::string& trial_id);

}  // namespace petlab::results
