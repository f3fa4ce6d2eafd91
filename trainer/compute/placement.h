#pragma once

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Where a trial computes, and in which types. What is trained is kept in a type of its own, so
/// that a backbone may compute in fewer bits than small changes of a weight need.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType compute = at::kFloat;  // the backbone, merged weights, activations
  at::ScalarType master = at::kFloat;   // trained weights and scores, their gradients and moments;
                                        // kFloat or kDouble
  /// The backbone's matrices are kept and multiplied in bfloat16, though it computes in float32:
  /// what goes into a product is rounded to it, and what comes out is widened.
  bool short_products = false;

  static Placement all_in(at::ScalarType dtype) { return {at::kCPU, dtype, dtype}; }
  at::TensorOptions computing() const { return at::TensorOptions().device(device).dtype(compute); }
  at::TensorOptions trained() const { return at::TensorOptions().device(device).dtype(master); }
  bool operator==(const Placement&) const = default;
};

}  // namespace petlab::trainer
