#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <vector>

#include "trainer/data/batches.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Thrown by a computation that was asked to stop.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Predicts the split with the model, merged for `task`, without dropout and gradients. Throws
/// Interrupted soon after `stop` is set, and NotFinite as Objective::predict.
Predictions predict(TrialModel& model, std::size_t task, const TokenisedSplit& split,
                    const std::atomic<bool>& stop);

/// Sorts examples by length, the longest last: attention runs packed batches in groups of similar
/// length.
void sort_by_length(const TokenisedSplit& split, std::vector<std::int64_t>& examples);

}  // namespace petlab::trainer
