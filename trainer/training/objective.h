#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "metrics/selection.h"
#include "sweeps/task.h"
#include "trainer/backbones/backbone.h"
#include "trainer/data/batches.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {

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

/// A task's metrics of some predictions.
struct Scores {
  std::vector<std::pair<std::string, std::optional<double>>> metrics;
  /// Those of them that the best checkpoint is selected by; the names are the task's own.
  std::vector<metrics::SelectedMetric> selected;
};

/// A module in its backbone, as an objective runs it on a packed batch. The module is merged.
struct ModelPass {
  const Backbone& frozen;
  const Module& module;
  const Dropout* dropout = nullptr;  // nullptr outside training

  Tensor encode(const EncoderInput& input, LastLayer last) const;
};

/// What a task asks of a model, for the K trials that are trained at once: its targets, the loss,
/// predictions and their score.
class Objective {
 public:
  virtual ~Objective() = default;

  /// What is trained for it beside the module, in a fixed order, with names of its own.
  virtual std::vector<Parameter> parameters() = 0;
  /// The same as an artifact keeps it for trial k.
  virtual std::vector<StoredTensor> stored(std::int64_t trial) = 0;

  /// As Module's: before the forward passes of a step, and after its backward.
  virtual void merge() = 0;
  virtual void gather() = 0;

  /// For each trial the sum of its examples' losses, a number. Differentiable.
  virtual std::vector<Tensor> losses(const ModelPass& model, const PackedBatch& batch) const = 0;

  /// Room for what predict says of so many examples.
  virtual Predictions empty_predictions(std::int64_t examples) const = 0;
  /// Predicts the batch's examples; what is said of trial k's goes to their places in
  /// predictions[k]. Throws NotFinite.
  virtual void predict(const ModelPass& model, const PackedBatch& batch,
                       std::span<Predictions> predictions) const = 0;
  /// The metrics of the task's declaration. Throws std::invalid_argument for one that this
  /// objective has no predictions for.
  virtual Scores score(const TokenisedSplit& split, const Predictions& predictions) const = 0;
};

/// The objective of a task: a head on the first token, for classes and for scores. `number` is the
/// task's in its trial.
std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const Backbone& backbone,
                                          std::span<const std::uint64_t> seeds);

}  // namespace petlab::trainer
