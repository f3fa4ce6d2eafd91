#pragma once

#include <cstdint>
#include <vector>

#include "sweeps/task.h"
#include "trainer/backbones/packed_rows.h"
#include "trainer/compute/dropout.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {

/// A task's head on the first token: out_proj(tanh(dense(x))).
class Head {
 public:
  /// `outputs` is the number of classes, or 1 for regression. `number`, the task's index,
  /// distinguishes the heads of a trial: parameters are named head.0.dense.weight and so on.
  Head(std::int64_t d_model, std::int64_t outputs, std::uint64_t seed, std::uint64_t number,
       const Placement& placement);

  /// Maps first (sequences, d_model) to logits (sequences, outputs). `rows` are first_token_rows,
  /// prepared for dropout of dropout_places().
  Tensor forward(const Tensor& first, const PackedRows& rows, const Dropout* dropout) const;
  static DrawnPlaces dropout_places();
  std::vector<Parameter> parameters();
  /// As in Module: call merge before the forward passes of a step, and gather after its backward
  /// pass.
  void merge();
  void gather();
  /// The tensors in the form that an artifact stores: dense.weight and so on.
  std::vector<StoredTensor> stored() const;
  std::int64_t outputs() const { return out_.plan().shape[0]; }

 private:
  MaskedWeight dense_, dense_bias_, out_, out_bias_;
};

/// The sum over the batch of the cross-entropy over classes, or of the squared error of regression.
/// targets (sequences): classes as int64, or scores in the type of the logits.
Tensor summed_loss(sweeps::TaskKind kind, const Tensor& logits, const Tensor& targets);

}  // namespace petlab::trainer
