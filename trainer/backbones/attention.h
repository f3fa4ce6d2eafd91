#pragma once

#include <optional>
#include <span>

#include "trainer/backbones/hooks.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

struct AttentionBuckets;

/// Sequences of a packed batch as attention sees them: sequence s has the keys
/// [keys.offsets[s], keys.offsets[s + 1]) and the queries [query_offsets[s], query_offsets[s + 1]).
/// In self-attention these are the first of its tokens (all of them, or one), in cross-attention
/// those of the other sequence.
struct AttentionShape {
  const PackedSequences& keys;
  std::span<const std::int64_t> query_offsets;  // (sequences + 1)
  std::int64_t num_heads = 1;
  std::int64_t layer = 0;
  bool scaled = true;   // scores are divided by sqrt(d_head)
  bool causal = false;  // a query sees no token behind it; its position is its number
  /// (heads, 2 · longest - 1), added to the scores by key's minus query's position, which is at
  /// longest - 1 where they are the same. Undefined: nothing is added.
  Tensor position_bias = {};
  Purpose dropout = Purpose::attention_dropout;
  /// (key tokens): the row of key and value in which each lies, so that texts that began alike
  /// share what they began with; empty: in order. Not differentiable.
  std::span<const std::int64_t> key_rows = {};
  /// attention_buckets() of this shape, which all layers of a pass share; nullptr: made when they
  /// are needed. A CPU's kernel needs none.
  const AttentionBuckets* buckets = nullptr;
};

/// softmax(query·keyᵀ / sqrt(d_head) + bias)·value for each sequence and head, in which every query
/// sees the keys of its sequence (as `shape` says) and, before them, its trial's prefix. query
/// (queries, width), key and value (tokens, width; any rows where key_rows names them); returns
/// (queries, width), where width is heads · d_head. Dropout, where given, acts on the
/// probabilities. Differentiable.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Prefix>& prefix, const AttentionShape& shape,
                 const Dropout* dropout);

/// The same out of LibTorch's own operations, on padded buckets of sequences of about one length:
/// for devices without a kernel of ours, and to test it.
Tensor attention_of_operations(const Tensor& query, const Tensor& key, const Tensor& value,
                               const std::optional<Prefix>& prefix, const AttentionShape& shape,
                               const Dropout* dropout);

}  // namespace petlab::trainer
