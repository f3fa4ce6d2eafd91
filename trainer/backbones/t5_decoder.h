#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/backbones/t5.h"

namespace petlab::trainer {

/// Runs a T5's decoder token by token. Each row is a partial text; all rows have the same length,
/// and the rows of an input are adjacent. Keys and values of a row's tokens are computed once and
/// stay in place, so rows with a common beginning share its keys and values. Those of a source are
/// computed once for all rows of its input.
class T5Decoder {
 public:
  /// Starts with one row for each of `sources` (of one trial), whose encoded states are `encoded`.
  /// Model and hooks must outlive it.
  T5Decoder(const T5& model, PackedSequences sources, const Tensor& encoded, const Hooks& hooks);

  /// Appends ids[r] to row r. Returns the logits of the next token, (rows, vocab_size).
  Tensor step(const std::vector<std::int64_t>& ids);

  /// Continues input i with its current rows listed in rows[i]. Inputs without rows leave; all
  /// others must have the same number of rows.
  void keep(const std::vector<std::vector<std::int64_t>>& rows);

 private:
  struct Memory {
    Tensor keys, values;                // (places, inner), of the rows' tokens
    Tensor source_keys, source_values;  // (source tokens, inner)
  };

  /// The rows' tokens in the form that attention takes, including the newest.
  struct RowTokens {
    PackedSequences sequences;
    std::vector<std::int64_t> query_offsets;
    Tensor bias;                                             // (heads, 2 · tokens - 1)
    std::optional<AttentionBuckets> buckets = std::nullopt;  // only on a GPU
  };

  /// Assigns a place in memory_ to each row's next token.
  RowTokens add_tokens(std::int64_t rows);
  /// Makes room for this many more places, and frees the places that no row uses.
  void make_room(std::int64_t places);
  Tensor attend_tokens(std::size_t layer, const Tensor& normed, const PackedRows& rows,
                       const RowTokens& row_tokens);
  Tensor attend_sources(std::size_t layer, const Tensor& normed, const PackedRows& rows) const;
  /// (heads, 2 · (tokens + 1) - 1), for a query after `tokens_` tokens.
  Tensor bias_of_last() const;

  const T5& model_;
  const Hooks& hooks_;
  PackedSequences sources_;
  std::vector<std::int64_t> row_offsets_;           // (inputs + 1)
  std::optional<AttentionBuckets> source_buckets_;  // if absent, the next step creates them
  std::vector<Memory> memory_;                      // by layer
  std::vector<std::int64_t> places_;  // (rows, tokens): the row of each in keys and values
  std::int64_t places_used_ = 0;
  std::int64_t tokens_ = 0;  // per row
};

}  // namespace petlab::trainer
