#pragma once

#include <cstdint>

#include "trainer/compute/product_weight.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The label-smoothed cross-entropy of each row (reference/method.md, "T5-base"):
/// (1 - smoothing) · -log p_target + smoothing / V · Σ_v -log p_v. logits (rows, V), targets (rows)
/// int64; returns (rows). Differentiable; backward makes the probabilities again, so that beside
/// the logits only their gradient is as large.
Tensor smoothed_losses(const Tensor& logits, const Tensor& targets, double smoothing);

/// The same of logits = states · weightᵀ, states (rows, d), weight (V, d), which are never held all
/// at once: as many rows at a time as make `chunk` logits (64 MiB of 32 bits). Where the weight is
/// frozen the gradient of the states is made in the same pass, else the logits once more in
/// backward. At least 32 bits. Differentiable.
Tensor projected_smoothed_losses(const Tensor& states, const ProductWeight& weight,
                                 const Tensor& targets, double smoothing,
                                 std::int64_t chunk = 1 << 24);

}  // namespace petlab::trainer
