#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"

namespace petlab::results {

// What the user decided on trials. All of it throws Error as the methods of Batch and Reader.

/// What the user decided on a trial: only trials that are cancelled or were allowed a retry.
struct Decided {
  std::string trial_id;
  bool cancelled = false;
  std::int64_t retried_after = 0;
  std::int64_t renewed_after = 0;
};

/// A trial is to be made again, whatever its attempts up to `after_attempt` came to.
struct Renewal {
  std::int64_t after_attempt = 0;
  bool discarded = false;  ///< their results count no more; else until a later one is there
  std::string why;
  double time = 0;
  bool operator==(const Renewal&) const = default;
};

/// A trial is in no report and no answer.
struct Hiding {
  std::string why;
  double time = 0;
  bool operator==(const Hiding&) const = default;
};

/// What the user said of a trial's results.
struct Care {
  std::vector<Renewal> renewals;  ///< by attempt
  std::optional<Hiding> hidden;
};

/// Takes a trial out of what is run, or back in. Throws std::invalid_argument for a trial that was
/// not recorded, as do the three below.
void set_cancelled(Batch& batch, const std::string& trial_id, bool cancelled);
/// Attempts up to this one no longer count against the limit of failures, and a later finished
/// attempt takes their place in the views.
void allow_retry(Batch& batch, const std::string& trial_id, std::int64_t after_attempt);
/// The same, also where one of them has finished: the trial is to be made again, and may be
/// claimed. A result of theirs counts until a later one is there or, where it is discarded, not
/// any more. Nothing is deleted.
void renew(Batch& batch, const std::string& trial_id, const Renewal& renewal);
/// Takes a trial out of the views and of what is asked of results, or back in (no `hiding`).
void set_hidden(Batch& batch, const std::string& trial_id, const std::optional<Hiding>& hiding);

/// Trials that are cancelled, were allowed a retry or are to be made again.
std::vector<Decided> decided(const Reader& reader);
/// What the user said of a trial's results.
Care care_of(const Reader& reader, const std::string& trial_id);

}  // namespace petlab::results
