#pragma once

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The label-smoothed cross-entropy of each row (reference/method.md, "T5-base"):
/// (1 - smoothing) · -log p_target + smoothing / V · Σ_v -log p_v. logits (rows, V), targets (rows)
/// int64; returns (rows). Differentiable; backward makes the probabilities again, so that beside
/// the logits only their gradient is as large.
Tensor smoothed_losses(const Tensor& logits, const Tensor& targets, double smoothing);

}  // namespace petlab::trainer
