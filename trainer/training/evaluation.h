#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <vector>

#include "trainer/data/batches.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Thrown out of a computation that was asked to stop.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Runs the model, merged for `task`, without dropout and gradients. Throws Interrupted as soon as
/// `stop` is set, NotFinite as Objective::predict.
Predictions predict(TrialModel& model, std::size_t task, const TokenisedSplit& split,
                    const std::atomic<bool>& stop);
/// The same of each of the trials that the model holds.
std::vector<Predictions> predict_trials(TrialModel& model, std::size_t task,
                                        const TokenisedSplit& split, const std::atomic<bool>& stop);

/// Examples sorted by length, the longest last: packed batches whose attention runs in groups.
void sort_by_length(const TokenisedSplit& split, std::vector<std::int64_t>& examples);

}  // namespace petlab::trainer
