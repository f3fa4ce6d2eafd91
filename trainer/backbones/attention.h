#pragma once

#include <optional>
#include <span>

#include "trainer/backbones/hooks.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

struct AttentionBuckets;

/// The sequences of a packed batch in an attention: sequence s has the keys [keys.offsets[s],
/// keys.offsets[s + 1]) and the queries [query_offsets[s], query_offsets[s + 1]). In
/// self-attention, the queries are its first tokens (all of them, or one); in cross-attention, the
/// tokens of the matching sequence.
struct AttentionShape {
  const PackedSequences& keys;
  std::span<const std::int64_t> query_offsets;  // (sequences + 1)
  std::int64_t num_heads = 1;
  std::int64_t layer = 0;
  bool scaled = true;   // scores are divided by sqrt(d_head)
  bool causal = false;  // queries see no later tokens; query i has position i
  /// The largest distance of a seen token's position from its query's, in both directions; -1:
  /// none. All queries see the prefix.
  std::int64_t window = -1;
  /// (heads, 2 · longest - 1), added to the scores by the key's position minus the query's; equal
  /// positions use index longest - 1. Undefined: no bias.
  Tensor position_bias = {};
  Purpose dropout = Purpose::attention_dropout;
  /// (key tokens): the row of each token in key and value, so that texts with a common beginning
  /// can share its rows; empty: in order. Not differentiable.
  std::span<const std::int64_t> key_rows = {};
  /// attention_buckets() of this shape, shared by all layers of a pass. If nullptr, attention
  /// computes them when needed; CPU kernels do not need them.
  const AttentionBuckets* buckets = nullptr;
};

/// Computes softmax(query·keyᵀ / sqrt(d_head) + bias)·value for each sequence and head. Each query
/// sees its trial's prefix and then the keys of its sequence (as `shape` says).
///
/// query is (queries, width), key and value (tokens, width), or any rows that key_rows refers to;
/// returns (queries, width), where width is heads · d_head. Dropout, if given, acts on the
/// probabilities. Differentiable.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Prefix>& prefix, const AttentionShape& shape,
                 const Dropout* dropout);

/// The same for one tensor (tokens, 3 · width) that joins the columns of query, key and value.
Tensor attention(const Tensor& joined, const std::optional<Prefix>& prefix,
                 const AttentionShape& shape, const Dropout* dropout);

/// The same from LibTorch's operations, on padded buckets of sequences of similar length. For
/// devices without a petlab kernel, and for tests.
Tensor attention_of_operations(const Tensor& query, const Tensor& key, const Tensor& value,
                               const std::optional<Prefix>& prefix, const AttentionShape& shape,
                               const Dropout* dropout);

}  // namespace petlab::trainer
