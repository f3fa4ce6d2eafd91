#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "results/attempt.h"
#include "sweeps/trial_state.h"

namespace petlab::results {

/// What a trial's state depends on in addition to the database.
struct StateContext {
  std::string sweep;  // results of other sweeps are cached
  /// As in has_failed().
  std::optional<std::int64_t> retries;
  /// True if an open attempt may still be running.
  std::function<bool(const AttemptFacts&)> alive;
  /// True if the numerics version or the data have changed since a finished attempt.
  std::function<bool(const AttemptFacts&)> outdated;
};

/// A trial's state and its origin.
struct StateOfTrial {
  sweeps::TrialState state = sweeps::TrialState::fresh;
  /// The finished attempt of a done, cached or stale trial; points into the given facts.
  const AttemptFacts* result = nullptr;
  /// The trial has a result that will be recomputed: a stale one (`--rerun stale`), or any.
  bool to_renew = false;
};

/// The only definition of states, used by run, plan, status, explain and reports.
StateOfTrial state_of(const TrialFacts& facts, const StateContext& context);

}  // namespace petlab::results
