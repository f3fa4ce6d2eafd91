#pragma once

#include <cstdint>
#include <span>

#include "trainer/compute/placement.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Rotary positions of rows (Su et al., "RoFormer", 2021): a row at `position` turns its pair
/// (x[i], x[i + d_head / 2]) by the angle position · theta^(-2 i / d_head), in each head.
struct Rotary {
  Tensor cosine, sine;  // (rows, 1, d_head / 2)

  Rotary() = default;
  /// As Hugging Face's models, computes angles in float32, or in float64 if the placement does. The
  /// last of `rows` rows have no position, and are not turned.
  Rotary(std::span<const std::int64_t> positions, std::int64_t rows, std::int64_t d_head,
         double theta, const Placement& placement);
};

/// Turns each head of x (rows, heads · d_head). Differentiable.
Tensor rotate(const Tensor& x, const Rotary& by);

}  // namespace petlab::trainer
