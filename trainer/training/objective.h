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
#include "sweeps/trial_config.h"
#include "trainer/backbones/backbone.h"
#include "trainer/data/batches.h"
#include "trainer/modules/module.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {

/// Thrown if a loss or a prediction is not a finite number.
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The model's predictions for the examples of a split, in the split's order.
struct Predictions {
  std::vector<std::int64_t> classes;  // (examples); empty for regression
  std::vector<double> scores;         // (examples); empty for classification
  std::vector<float> logits;          // (examples, outputs) of the head
  std::int64_t outputs = 0;
  std::vector<std::string> texts;   // (examples), from a text-to-text model; else empty
  std::vector<double> text_scores;  // (examples), the texts' GeneratedText::score
};

/// The metrics of a task's predictions.
struct Scores {
  std::vector<std::pair<std::string, std::optional<double>>> metrics;
  /// The metrics used to select the best checkpoint, by the task's own names.
  std::vector<metrics::SelectedMetric> selected;
};

/// Predictions and references, one line per example, in the format of `petlab score`: class
/// numbers, scores, or texts as JSON strings. An invalid prediction is "none".
struct ScoredLines {
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
  bool texts = false;
};

/// A backbone with what acts on it: a trial's merged module, or those of a gang (GangHooks).
struct ModelPass {
  const Backbone& backbone;
  const Hooks& hooks;
  const Dropout* dropout = nullptr;  // nullptr outside training
};

/// A backbone with its tokenizer. Both must outlive all users of this object.
struct Pretrained {
  Pretrained(const Backbone& backbone, const Tokenizer* its_tokenizer = nullptr)  // NOLINT
      : model(backbone), tokenizer(its_tokenizer) {}

  const Backbone& model;
  /// nullptr if no texts are generated: a head needs none.
  const Tokenizer* tokenizer;
};

/// The objective of a task of a trial: its targets, loss, predictions and scores.
class Objective {
 public:
  virtual ~Objective() = default;

  /// The parameters trained in addition to the module, in a fixed order, with unique names.
  virtual std::vector<Parameter> parameters() = 0;
  /// The parameters in the form that an artifact stores.
  virtual std::vector<StoredTensor> stored() const = 0;

  /// As in Module: call merge before the forward passes of a step, and gather after its backward
  /// pass.
  virtual void merge() = 0;
  virtual void gather() = 0;

  /// The number of terms in the mean loss of these examples: the examples, or the tokens of their
  /// targets.
  virtual std::int64_t loss_terms(const TokenisedSplit& split,
                                  std::span<const std::int64_t> examples) const = 0;
  /// The states from which loss() computes, (rows, d_model) in the batch's order. They are the part
  /// of the forward pass that a gang shares: any objective of the same backbone computes them.
  virtual Tensor states(const ModelPass& model, const PackedBatch& batch) const = 0;
  /// The number of rows in states().
  virtual std::int64_t state_rows(const PackedBatch& batch) const = 0;
  /// The sum of the batch's losses, a scalar tensor. Differentiable.
  virtual Tensor loss(const ModelPass& model, const Tensor& states,
                      const PackedBatch& batch) const = 0;

  /// Allocates predictions for this many examples.
  virtual Predictions empty_predictions(std::int64_t examples) const = 0;
  /// Predicts the batch's examples and stores the results at their indices in `predictions`. Throws
  /// NotFinite.
  virtual void predict(const ModelPass& model, const PackedBatch& batch,
                       Predictions& predictions) const = 0;
  /// Computes the metrics of the task's declaration. Throws std::invalid_argument for a metric that
  /// does not fit this objective's predictions.
  virtual Scores score(const TokenisedSplit& split, const Predictions& predictions) const = 0;
  /// The references and predictions that score() compares.
  virtual ScoredLines lines(const TokenisedSplit& split, const Predictions& predictions) const = 0;
};

/// Creates the objective of a trial's task. Encoders get a head on the first token, for classes or
/// scores; a T5 generates texts for every task. `number` is the task's index in its trial. Throws
/// std::invalid_argument if the backbone does not support it: texts or decoding with an encoder.
std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const sweeps::TrialConfig& config,
                                          const Pretrained& pretrained);

}  // namespace petlab::trainer
