#pragma once

#include <optional>

#include "trainer/backbones/attention.h"

namespace petlab::trainer {

/// Computes attention() with LibTorch's memory-efficient kernel for packed sequences of different
/// lengths, without padding. Returns std::nullopt if the device lacks the kernel or the kernel
/// lacks a feature: training (its dropout differs from petlab's), a bias, causal attention, a
/// window, a prefix, key rows, or heads of a width that it cannot load.
std::optional<Tensor> fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const std::optional<Prefix>& prefix,
                                      const AttentionShape& shape, const Dropout* dropout);

}  // namespace petlab::trainer
