#pragma once

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The device and the types that a trial computes with. Trained tensors have a type of their own,
/// because small changes of a weight may need more bits than the backbone computes with.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType compute = at::kFloat;  // of the backbone, merged weights, activations
  at::ScalarType master = at::kFloat;   // of trained weights and scores, their gradients and
                                        // moments; kFloat or kDouble
  /// The backbone computes in float32, but its matrices are stored and multiplied in bfloat16:
  /// inputs of a product are rounded, and results are widened.
  bool short_products = false;

  static Placement all_in(at::ScalarType dtype) { return {at::kCPU, dtype, dtype}; }
  at::TensorOptions computing() const { return at::TensorOptions().device(device).dtype(compute); }
  at::TensorOptions trained() const { return at::TensorOptions().device(device).dtype(master); }
  bool operator==(const Placement&) const = default;
};

}  // namespace petlab::trainer
