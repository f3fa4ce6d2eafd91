#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/backbones/attention.h"
#include "trainer/compute/dropout_draws.h"

namespace petlab::trainer {

/// Sequences of similar length, padded to the longest, which attention_of_operations computes
/// together.
struct AttentionBucket {
  std::int64_t sequences = 0;
  std::int64_t queries = 0;  // in the longest sequence
  std::int64_t keys = 0;     // likewise, without a prefix
  bool keys_padded = false;  // whether some sequence has fewer keys
  Tensor query_rows;  // (sequences · queries): their rows; padding uses any row of its sequence
  Tensor key_rows;    // (sequences · keys)
  Tensor lengths;     // (sequences): number of keys
  Tensor trials;      // (sequences)
  /// True where a query does not see a key. Broadcasts to (sequences, heads, queries, keys).
  /// Undefined if all queries see all keys.
  Tensor hidden;
  /// Added to the scores, with the same broadcast: the position bias, and minus infinity for hidden
  /// keys. Undefined without a position bias. Differentiable.
  Tensor bias;
  std::shared_ptr<DropoutDraws> draws;  // (sequences, queries)
};

/// The layout of a batch's sequences for attention on a device. Creating it takes one copy to the
/// device.
struct AttentionBuckets {
  std::vector<AttentionBucket> all;  // empty if petlab's kernels compute attention: they need none
  /// (query rows): the index of each row in the concatenated outputs of all buckets. They are
  /// followed by a row of zeros, for rows that belong to no sequence.
  Tensor output_rows;
  Tensor query_starts, key_starts;  // (sequences + 1) of kInt
  Tensor trials, examples;          // (sequences)
  std::int64_t most_queries = 0;    // of one sequence
  std::int64_t most_keys = 0;
};

/// Creates the buckets of shape's sequences, whose queries occupy `rows` rows. There are at most as
/// many buckets as powers of two up to the longest sequence, or as pairs of these for
/// cross-attention.
///
/// `layers` layers, from shape.layer on, share this shape. With `for_kernels`, no buckets are
/// created if kernels_for_attention() returns kernels.
AttentionBuckets attention_buckets(const AttentionShape& shape, std::int64_t rows,
                                   std::int64_t layers, at::Device device, bool for_kernels = true);

}  // namespace petlab::trainer
