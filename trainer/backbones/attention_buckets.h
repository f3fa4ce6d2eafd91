#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/backbones/attention.h"
#include "trainer/compute/dropout_draws.h"

namespace petlab::trainer {

/// Sequences of about one length, padded to the longest of them, which attention of operations runs
/// at once.
struct AttentionBucket {
  std::int64_t sequences = 0;
  std::int64_t queries = 0;  // of the sequence that has most
  std::int64_t keys = 0;     // likewise, without a prefix
  bool keys_padded = false;  // whether some sequence has fewer
  Tensor query_rows;  // (sequences · queries): where each lies; padding takes any of its own
  Tensor key_rows;    // (sequences · keys)
  Tensor lengths;     // (sequences): keys of each
  Tensor trials;      // (sequences)
  /// Whether a query does not see a key, which broadcasts to (sequences, heads, queries, keys);
  /// undefined where all see all.
  Tensor hidden;
  /// What is added to the scores, which broadcasts likewise: the bias of positions, minus infinity
  /// where a key is hidden. Undefined without such a bias. Differentiable.
  Tensor bias;
  std::shared_ptr<DropoutDraws> draws;  // (sequences, queries)
};

/// How the sequences of a batch lie for attention on a device, which costs one copy to it.
struct AttentionBuckets {
  std::vector<AttentionBucket> all;  // empty if petlab's kernels compute attention: they need none
  /// (query rows): the place of each among those of all buckets, end to end; behind them is a row
  /// of zeros, for rows that are nobody's.
  Tensor output_rows;
  Tensor query_starts, key_starts;  // (sequences + 1) of kInt
  Tensor trials, examples;          // (sequences)
  std::int64_t most_queries = 0;    // of one sequence
  std::int64_t most_keys = 0;
};

/// The buckets of shape's sequences whose queries lie in `rows` rows. There are at most as many as
/// powers of two up to the longest sequence, or pairs of them where keys are another sequence's.
/// `layers`: how many have this shape, that of shape.layer the first; all else of it is theirs,
/// too. With `for_kernels`, no buckets are made if kernels_for_attention() returns kernels.
AttentionBuckets attention_buckets(const AttentionShape& shape, std::int64_t rows,
                                   std::int64_t layers, at::Device device, bool for_kernels = true);

}  // namespace petlab::trainer
