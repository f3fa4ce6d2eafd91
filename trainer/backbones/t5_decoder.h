#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/backbones/t5.h"

namespace petlab::trainer {

/// A T5's decoder, token by token. A row is a text in the making; all rows are equally long, and
/// the rows of an input stand beside each other. Keys and values of a row's tokens are computed
/// once and stay where they are: rows that began alike share what they began with. Those of an
/// input's source are computed once for all of its rows.
class T5Decoder {
 public:
  /// One row for each of `sources` (of one trial), whose encoded states `encoded` holds. Model and
  /// hooks must outlive it.
  T5Decoder(const T5& model, PackedSequences sources, const Tensor& encoded, const Hooks& hooks);

  /// Appends ids[r] to row r; returns what is said of the next token, (rows, vocab_size).
  Tensor step(const std::vector<std::int64_t>& ids);

  /// Input i goes on with the rows that rows[i] names, among those there are now. Inputs without
  /// rows leave; all others have as many.
  void keep(const std::vector<std::vector<std::int64_t>>& rows);

 private:
  struct Memory {
    Tensor keys, values;                // (places, inner) of the rows' tokens
    Tensor source_keys, source_values;  // (source tokens, inner)
  };

  /// The tokens of the rows as attention sees them, the newest ones included.
  struct OwnTokens {
    PackedSequences sequences;
    std::vector<std::int64_t> query_offsets;
    Tensor bias;                                             // (heads, 2 · tokens - 1)
    std::optional<AttentionBuckets> buckets = std::nullopt;  // on a device that is no CPU
  };

  /// Gives each row's next token a place in memory_.
  OwnTokens add_tokens(std::int64_t rows);
  /// Makes room for so many places more, and lets go of those that no row has.
  void make_room(std::int64_t places);
  Tensor attend_own(std::size_t layer, const Tensor& asked, const PackedRows& rows,
                    const OwnTokens& own);
  Tensor attend_sources(std::size_t layer, const Tensor& asked, const PackedRows& rows) const;
  /// (heads, 2 · (tokens + 1) - 1) for a query behind so many tokens.
  Tensor bias_of_last() const;

  const T5& model_;
  const Hooks& hooks_;
  PackedSequences sources_;
  std::vector<std::int64_t> row_offsets_;           // (inputs + 1)
  std::optional<AttentionBuckets> source_buckets_;  // of both; made by the next step where absent
  std::vector<Memory> memory_;                      // by layer
  std::vector<std::int64_t> places_;  // (rows, tokens): where each lies in keys and values
  std::int64_t places_used_ = 0;
  std::int64_t tokens_ = 0;  // of each row
};

}  // namespace petlab::trainer
