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

/// The learning rate that applies to a parameter.
enum class Rate { module, scores };

/// A trained tensor, as the optimizer, checkpoints and artifacts see it.
struct Parameter {
  std::string name;
  Tensor value;
  Tensor gradient;  // of the same shape; the module zeroes it
  Rate rate = Rate::module;
  bool decayed = true;                             // weight decay; not for biases and LayerNorms
  std::optional<std::size_t> task = std::nullopt;  // the only task that uses it; absent: all
  bool by_task = false;  // alternatively, dimension 0 has a slice for each task
};

/// A tensor of a trained module, as an artifact stores it. It shares the module's memory, so
/// reading an artifact writes into the module.
struct StoredTensor {
  std::string name;
  Tensor values;                   // 32 bits per element
  Tensor masks = {};               // (L, shape…): one bit per element; undefined without a mask
  Tensor task_masks = {};          // (T, shape…); undefined without task masks
  bool only_what_is_kept = false;  // store only the values whose mask is one (only_mask)
};

using metrics::MaskCombination;

/// One weight of a module across all layers: a prototype shared by the layers, or a weight for
/// each, and its masks. Forward passes use the merged weights, one leaf tensor per layer, which are
/// computed once per optimizer step in the type of the backbone. gather() then carries their
/// gradients back to prototype and scores (straight-through, on |s|), which have the master type.
struct WeightPlan {
  std::string name;                 // "down.weight"
  std::vector<std::int64_t> shape;  // of one layer: (out, in), or (out)
  std::int64_t layers = 1;          // L
  std::int64_t tasks = 0;           // T task masks besides the layers'; 0: none
  bool share = false;
  metrics::MaskKind mask = metrics::MaskKind::none;
  double sparsity_ratio = 1.0;
  MaskCombination combine = MaskCombination::or_;
  bool decayed = true;
  /// False if the prototype is itself the output of trained weights (prefix), and hence not a
  /// parameter.
  bool trained = true;
};

class MaskedWeight {
 public:
  MaskedWeight(WeightPlan plan, const Placement& placement);

  const WeightPlan& plan() const { return plan_; }
  /// (P, shape…); P is 1 if shared, else L.
  Tensor& values() { return values_; }
  const Tensor& values() const { return values_; }
  Tensor& values_gradient() { return values_gradient_; }
  /// (L, shape…); undefined unless the mask is learned.
  Tensor& scores() { return scores_; }
  /// (T, shape…); undefined without task masks.
  Tensor& task_scores() { return task_scores_; }
  /// (L, shape…) of 0 and 1; undefined without a mask. Random masks are drawn once, learned ones
  /// are computed by merge().
  Tensor& masks() { return masks_; }
  const Tensor& masks() const { return masks_; }
  /// (T, shape…), computed like masks(); undefined without task masks.
  const Tensor& task_masks() const { return task_masks_; }

  /// Draws the random masks, one per layer and, with several tasks, one per task. `parameter` is
  /// this weight's number.
  void draw_random_masks(std::uint64_t seed, std::uint64_t parameter);
  /// Computes the masks from the scores (unless `frozen_masks`) and merges them into the weights of
  /// every layer for a batch of `task`.
  void merge(std::int64_t task, bool frozen_masks = false);
  /// The merged weight of layer l: (shape…).
  const Tensor& layer(std::int64_t l) const {
    return leaves_[leaves_.size() == 1 ? 0 : static_cast<std::size_t>(l)];
  }
  /// Adds the merged weights' gradients to those of prototype and scores, and clears them.
  void gather();
  /// The tensor in the form that an artifact stores.
  StoredTensor stored() const;
  /// Appends the values (if trained) and the scores.
  void append_parameters(std::vector<Parameter>& parameters);

 private:
  void derive(const Tensor& scores, Tensor& masks) const;
  Tensor hybrid() const;

  WeightPlan plan_;
  Tensor values_, values_gradient_;
  Tensor scores_, scores_gradient_, masks_;
  Tensor task_scores_, task_scores_gradient_, task_masks_;
  /// (L or 1, shape…). It is the values themselves if there is no mask and the types are equal.
  Tensor merged_;
  std::vector<Tensor> leaves_;
  bool merged_apart_ = false;  // has separate memory
  std::int64_t task_ = 0;
};

}  // namespace petlab::trainer
