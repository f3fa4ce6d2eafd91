#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/modules/head.h"
#include "trainer/training/objective.h"

namespace petlab::trainer {

/// A head on the first token, with cross-entropy over classes or the squared error of a score.
class HeadObjective final : public Objective {
 public:
  /// `label_smoothing` is the share of the cross-entropy spread over all classes. Throws
  /// std::invalid_argument if it is set for a score.
  HeadObjective(sweeps::TaskDeclaration task, std::uint64_t number, double label_smoothing,
                const Backbone& backbone, std::uint64_t seed);

  std::vector<Parameter> parameters() override { return head_.parameters(); }
  std::vector<StoredTensor> stored() const override { return head_.stored(); }
  void merge() override { head_.merge(); }
  void gather() override { head_.gather(); }
  std::int64_t loss_terms(const TokenisedSplit&,
                          std::span<const std::int64_t> examples) const override {
    return static_cast<std::int64_t>(examples.size());
  }
  /// The first token's state of each sequence.
  Tensor states(const ModelPass& model, const PackedBatch& batch) const override {
    return model.backbone.encode(batch.input, model.hooks, LastLayer::first_tokens, model.dropout);
  }
  std::int64_t state_rows(const PackedBatch& batch) const override { return batch.size(); }
  Tensor loss(const ModelPass& model, const Tensor& states,
              const PackedBatch& batch) const override;
  Predictions empty_predictions(std::int64_t examples) const override;
  void predict(const ModelPass& model, const PackedBatch& batch,
               Predictions& predictions) const override;
  Scores score(const TokenisedSplit& split, const Predictions& predictions) const override;
  ScoredLines lines(const TokenisedSplit& split, const Predictions& predictions) const override;

 private:
  /// Returns (sequences, outputs).
  Tensor logits(const Tensor& states, const PackedBatch& batch, const Dropout* dropout) const;
  bool is_regression() const { return task_.kind == sweeps::TaskKind::regression; }

  sweeps::TaskDeclaration task_;
  double label_smoothing_;
  Head head_;
};

}  // namespace petlab::trainer
