#pragma once

#include <cstdint>

#include "trainer/compute/product_weight.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The label-smoothed cross-entropy of each row (reference/method.md, "T5-base"): (1 - smoothing) ·
/// -log p_target + smoothing / V · Σ_v -log p_v. logits (rows, V), targets (rows) int64; returns
/// (rows). Differentiable. Backward recomputes the probabilities, so only the logits and their
/// gradient take memory of that size.
Tensor smoothed_losses(const Tensor& logits, const Tensor& targets, double smoothing);

/// The same for logits = states · weightᵀ, states (rows, d), weight (V, d), without holding all of
/// them: rows are processed in chunks of at most `chunk` logits (64 MiB in 32 bits). With a frozen
/// weight, the gradient of the states is computed in the same pass; otherwise, backward recomputes
/// the logits. Uses at least 32 bits. Differentiable.
Tensor projected_smoothed_losses(const Tensor& states, const ProductWeight& weight,
                                 const Tensor& targets, double smoothing,
                                 std::int64_t chunk = 1 << 24);

}  // namespace petlab::trainer
