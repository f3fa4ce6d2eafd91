#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/backbones/generation.h"
#include "trainer/backbones/t5.h"
#include "trainer/training/objective.h"

namespace petlab::trainer {

/// A T5's objective for every task (reference/method.md, "T5-base"): the label-smoothed
/// cross-entropy of the target's tokens for training, and generated texts for predictions. It
/// trains nothing besides the module.
class TextObjective final : public Objective {
 public:
  /// Throws std::invalid_argument for a missing tokenizer or unsupported decoding options.
  TextObjective(sweeps::TaskDeclaration task, const sweeps::TrialConfig& config,
                const Pretrained& pretrained);

  std::vector<Parameter> parameters() override { return {}; }
  std::vector<StoredTensor> stored() const override { return {}; }
  void merge() override {}
  void gather() override {}
  /// The number of tokens in the targets, with their end tokens.
  std::int64_t loss_terms(const TokenisedSplit& split,
                          std::span<const std::int64_t> examples) const override;
  /// The decoder's state at each token of the targets.
  Tensor states(const ModelPass& model, const PackedBatch& batch) const override;
  std::int64_t state_rows(const PackedBatch& batch) const override {
    return batch.targets.tokens();
  }
  Tensor loss(const ModelPass& model, const Tensor& states,
              const PackedBatch& batch) const override;
  Predictions empty_predictions(std::int64_t examples) const override;
  void predict(const ModelPass& model, const PackedBatch& batch,
               Predictions& predictions) const override;
  Scores score(const TokenisedSplit& split, const Predictions& predictions) const override;
  ScoredLines lines(const TokenisedSplit& split, const Predictions& predictions) const override;

  const GenerationOptions& generation() const { return generation_; }

 private:
  sweeps::TaskDeclaration task_;
  const Tokenizer& tokenizer_;
  double label_smoothing_;
  GenerationOptions generation_;
};

/// The class whose target text equals this text, apart from white space at its ends. Absent if
/// there is none.
std::optional<std::int64_t> class_of_text(const sweeps::TaskDeclaration& task,
                                          const std::string& text);

}  // namespace petlab::trainer
