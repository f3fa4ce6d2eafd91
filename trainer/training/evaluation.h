#pragma once

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "metrics/selection.h"
#include "sweeps/task.h"
#include "trainer/data/batches.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Thrown out of a computation that was asked to stop.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Thrown where a loss or a prediction is no finite number.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the model says of each example of a split, in the split's order.
struct Predictions {
  std::vector<std::int64_t> classes;  // (examples); empty for regression
  std::vector<double> scores;         // (examples); empty for classification
  std::vector<float> logits;          // (examples, outputs) of the head
  std::int64_t outputs = 0;
};

/// Runs the model, merged for `task`, without dropout and gradients. Throws Interrupted as soon as
/// `stop` is set, NotFinite where a logit is not finite.
Predictions predict(TrialModel& model, std::size_t task, const TokenisedSplit& split,
                    const std::atomic<bool>& stop);

/// The task's metrics of the predictions.
struct Scores {
  std::vector<std::pair<std::string, std::optional<double>>> metrics;
  /// Those of them that the best checkpoint is selected by; the names are the task's own.
  std::vector<metrics::SelectedMetric> selected;
};
Scores score(const sweeps::TaskDeclaration& task, const TokenisedSplit& split,
             const Predictions& predictions);

/// Examples sorted by length, the longest last: packed batches whose attention runs in groups.
void sort_by_length(const TokenisedSplit& split, std::vector<std::int64_t>& examples);

}  // namespace petlab::trainer
