#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "results/attempt.h"
#include "sweeps/trial_state.h"

namespace petlab::results {

/// What a trial's state depends on besides what the database knows of it.
struct StateContext {
  std::string sweep;  // name: finished by another is cached
  /// As for has_failed().
  std::optional<std::int64_t> retries;
  /// Whether an open attempt may still be at work.
  std::function<bool(const AttemptFacts&)> alive;
  /// Whether the numerics version or the data have changed since a finished attempt.
  std::function<bool(const AttemptFacts&)> outdated;
};

/// A trial's state, and what it follows from.
struct StateOfTrial {
  sweeps::TrialState state = sweeps::TrialState::fresh;
  /// The finished attempt of done, cached and stale, in the facts that were asked about.
  const AttemptFacts* result = nullptr;
  /// It has a result that the user wants anew: an outdated one (`--rerun stale`), or any.
  bool to_renew = false;
};

/// The one definition of run, plan, status, explain and reports.
StateOfTrial state_of(const TrialFacts& facts, const StateContext& context);

}  // namespace petlab::results
