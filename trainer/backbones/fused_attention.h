#pragma once

#include <optional>

#include "trainer/backbones/attention.h"

namespace petlab::trainer {

/// What attention() computes, by LibTorch's memory-efficient kernel for packed sequences of several
/// lengths, which pads nothing; std::nullopt where the device has none, or where that kernel cannot
/// do it: in training (it has a dropout of its own, which is not petlab's), with a bias, causal,
/// with a prefix, with rows by number, or with heads of a width that it does not load.
std::optional<Tensor> fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const std::optional<Prefix>& prefix,
                                      const AttentionShape& shape, const Dropout* dropout);

}  // namespace petlab::trainer
