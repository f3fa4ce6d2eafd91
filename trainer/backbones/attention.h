#pragma once

#include <optional>
#include <span>

#include "trainer/backbones/hooks.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

/// Sequences of a packed batch as attention sees them: sequence s has the keys
/// [keys.offsets[s], keys.offsets[s + 1]) and the queries [query_offsets[s], query_offsets[s + 1]),
/// which are the first of its tokens (all of them, or one).
struct AttentionShape {
  const PackedSequences& keys;
  std::span<const std::int64_t> query_offsets;  // (sequences + 1)
  std::int64_t num_heads = 1;
  std::int64_t layer = 0;
};

/// softmax(query·keyᵀ / sqrt(d_head))·value for each sequence and head, in which every token of a
/// sequence sees all tokens of it and, before them, its trial's prefix. query (queries, d_model),
/// key and value (tokens, d_model); returns (queries, d_model). Dropout, where given, acts on the
/// probabilities. Differentiable.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Prefix>& prefix, const AttentionShape& shape,
                 const Dropout* dropout);

/// The same out of LibTorch's own operations: for devices without a kernel of ours, and to test it.
Tensor attention_of_operations(const Tensor& query, const Tensor& key, const Tensor& value,
                               const std::optional<Prefix>& prefix, const AttentionShape& shape,
                               const Dropout* dropout);

}  // namespace petlab::trainer
