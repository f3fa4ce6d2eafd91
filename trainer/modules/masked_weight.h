#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/storage.h"
#include "trainer/compute/placement.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Which learning rate a parameter has.
enum class Rate { module, scores };

/// A trained tensor as the optimizer, checkpoints and artifacts see it.
struct Parameter {
  std::string name;
  Tensor value;     // leading dimension K
  Tensor gradient;  // of the same shape; zeroed by the module
  Rate rate = Rate::module;
  bool decayed = true;                             // weight decay: not on biases and LayerNorms
  std::optional<std::size_t> task = std::nullopt;  // the one task that uses it; absent: all do
  bool by_task = false;                            // or: dimension 1 has a slice for each task
  /// Whether checkpoints keep dimension 0, which is 1 there.
  bool trial_dimension_in_files = true;

  /// Trial k's part of the value, or of another tensor of its shape, as its files have it.
  Tensor of_trial(const Tensor& all, std::int64_t k) const {
    return trial_dimension_in_files ? all.narrow(0, k, 1) : all.select(0, k);
  }
};

/// A tensor of a trained module as an artifact keeps it. The tensors are the module's own memory:
/// reading an artifact writes into them.
struct StoredTensor {
  std::string name;
  Tensor values;           // 32 bits an element
  Tensor masks = {};       // (L, shape…): a bit an element; undefined where nothing is masked
  Tensor task_masks = {};  // (T, shape…); undefined without
  bool only_what_is_kept = false;  // of the values those where the mask has a one (only_mask)
};

using metrics::MaskCombination;

/// One weight of a module in all layers: a prototype shared by the layers or a weight each, and its
/// masks. What a forward pass uses are the merged weights, one leaf tensor a layer, made once an
/// optimizer step in the type that the backbone computes in; gather() then carries their gradients
/// back to prototype and scores (straight-through, on |s|), which are of the master type.
struct WeightPlan {
  std::string name;                 // "down.weight"
  std::vector<std::int64_t> shape;  // of one layer: (out, in), or (out)
  std::int64_t layers = 1;          // L
  std::int64_t trials = 1;          // K
  std::int64_t tasks = 0;           // T task masks beside the layers'; 0: none
  bool share = false;
  metrics::MaskKind mask = metrics::MaskKind::none;
  double sparsity_ratio = 1.0;
  MaskCombination combine = MaskCombination::or_;
  bool decayed = true;
  /// False where the prototype is the output of something trained (prefix): then it is no
  /// parameter itself.
  bool trained = true;
};

class MaskedWeight {
 public:
  MaskedWeight(WeightPlan plan, const Placement& placement);

  const WeightPlan& plan() const { return plan_; }
  /// (K, P, shape…), P = 1 shared, else L.
  Tensor& values() { return values_; }
  const Tensor& values() const { return values_; }
  Tensor& values_gradient() { return values_gradient_; }
  /// (K, L, shape…); undefined unless the mask is learned.
  Tensor& scores() { return scores_; }
  /// (K, T, shape…); undefined without task masks.
  Tensor& task_scores() { return task_scores_; }
  /// (K, L, shape…) of 0 and 1; undefined where the mask is none. Random ones are drawn once,
  /// learned ones derived by merge().
  Tensor& masks() { return masks_; }
  const Tensor& masks() const { return masks_; }
  /// (K, T, shape…), made as masks() are; undefined without task masks.
  const Tensor& task_masks() const { return task_masks_; }

  /// Draws the random sub-networks of trial `k`, one a layer and, with several tasks, one a task.
  /// `parameter` numbers this weight.
  void draw_random_masks(std::int64_t k, std::uint64_t seed, std::uint64_t parameter);
  /// Derives the masks from the scores (not where `frozen_masks`) and merges them into the weights
  /// of every layer, for a batch of `task`. Clears the merged weights' gradients.
  void merge(std::int64_t task, bool frozen_masks = false);
  /// (K, shape…): the weight that layer l uses.
  const Tensor& layer(std::int64_t l) const {
    return leaves_[leaves_.size() == 1 ? 0 : static_cast<std::size_t>(l)];
  }
  /// Adds to the gradients of prototype and scores what backward left in the merged weights, and
  /// clears that.
  void gather();
  /// As an artifact keeps trial k's.
  StoredTensor stored(std::int64_t trial);
  /// Appends the values (where trained) and the scores.
  void append_parameters(std::vector<Parameter>& parameters);

 private:
  void derive(const Tensor& scores, Tensor& masks) const;
  Tensor hybrid() const;

  WeightPlan plan_;
  Tensor values_, values_gradient_;
  Tensor scores_, scores_gradient_, masks_;
  Tensor task_scores_, task_scores_gradient_, task_masks_;
  /// (L or 1, K, shape…); the values' own memory where nothing is masked and the types are one.
  Tensor merged_;
  Tensor merged_gradient_;  // the same shape; the leaves' gradients are its slices
  std::vector<Tensor> leaves_;
  bool merged_apart_ = false;  // in memory of their own
  std::int64_t task_ = 0;
};

}  // namespace petlab::trainer
