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
  std::vector<std::string> texts;   // (examples) that a text-to-text model wrote, else empty
  std::vector<double> text_scores;  // (examples): theirs, as GeneratedText::score
};

/// A task's metrics of some predictions.
struct Scores {
  std::vector<std::pair<std::string, std::optional<double>>> metrics;
  /// Those of them that the best checkpoint is selected by; the names are the task's own.
  std::vector<metrics::SelectedMetric> selected;
};

/// Predictions beside what was wanted, a line an example, as `petlab score` reads them: classes by
/// number, scores, or texts as JSON strings. What is none of them is "none".
struct ScoredLines {
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
  bool texts = false;
};

/// A module in its backbone, as an objective runs it on a packed batch. The module is merged.
struct ModelPass {
  const Backbone& frozen;
  const Module& module;
  const Dropout* dropout = nullptr;  // nullptr outside training

  /// The backbone that trial k computes with: the module's own where it has one.
  const Backbone& backbone(std::int64_t trial) const;
  Tensor encode(const EncoderInput& input, LastLayer last) const;
};

/// A backbone with what its texts were tokenised by, both of which outlive what uses them.
struct Pretrained {
  Pretrained(const Backbone& backbone, const Tokenizer* its_tokenizer = nullptr)  // NOLINT
      : model(backbone), tokenizer(its_tokenizer) {}

  const Backbone& model;
  /// nullptr where nothing has to be written: a head's objective needs none.
  const Tokenizer* tokenizer;
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

  /// What the mean loss of these examples of the split is taken over: themselves, or the tokens
  /// that are to be written of them.
  virtual std::int64_t loss_terms(const TokenisedSplit& split,
                                  std::span<const std::int64_t> examples) const = 0;
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
  /// What score() compares.
  virtual ScoredLines lines(const TokenisedSplit& split, const Predictions& predictions) const = 0;
};

/// The objective of a task as its trial configures it: on an encoder a head on the first token, for
/// classes and for scores; on a T5 texts, whatever the task asks for. `number` is the task's in its
/// trial. Throws std::invalid_argument for what the backbone cannot do: texts or decoding with an
/// encoder, several trials at once with a T5.
std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const sweeps::TrialConfig& config,
                                          const Pretrained& pretrained,
                                          std::span<const std::uint64_t> seeds);

}  // namespace petlab::trainer
