#pragma once

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// T5's norm: x / sqrt(mean(x²) + eps) · weight, without mean and bias (Zhang and Sennrich, "Root
/// mean square layer normalization", NeurIPS 2019).
struct RmsNorm {
  Tensor weight;  // (d_model)
  double eps = 1e-6;
  /// Normalises the rows of x (rows, d_model). Computes the mean at least in float32.
  Tensor operator()(const Tensor& x) const;
};

}  // namespace petlab::trainer
