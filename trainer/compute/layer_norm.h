#pragma once

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A LayerNorm of the backbone: weight and bias (d_model). Undefined: no bias, which the norms of a
/// sum in operations.h must have.
struct LayerNorm {
  Tensor weight;
  Tensor bias;
  double eps = 1e-12;
  /// Normalises the rows of x (rows, d_model).
  Tensor operator()(const Tensor& x) const;
};

}  // namespace petlab::trainer
