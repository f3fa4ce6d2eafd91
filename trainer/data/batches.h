#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/examples.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {

/// The tokenised examples of a split, end to end.
struct TokenisedSplit {
  std::vector<std::int32_t> ids;       // (all tokens)
  std::vector<std::int32_t> type_ids;  // (all tokens)
  std::vector<std::int64_t> offsets;   // (examples + 1): example e is [offsets[e], offsets[e + 1])
  std::vector<std::int32_t> classes;   // (examples); empty for a score
  std::vector<float> scores;           // (examples); empty for classes
  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t tokens(std::int64_t example) const {
    return offsets[static_cast<std::size_t>(example) + 1] -
           offsets[static_cast<std::size_t>(example)];
  }
};

/// Tokenises every example, truncated to `max_tokens`.
TokenisedSplit tokenise(const Split& split, const Tokenizer& tokenizer, std::int64_t max_tokens);

/// Several examples as one packed input: only real tokens, no padding.
struct PackedBatch {
  std::vector<std::int64_t> ids;           // (tokens)
  std::vector<std::int64_t> type_ids;      // (tokens)
  std::vector<std::int64_t> position_ids;  // (tokens): first_position, first_position + 1, …
  std::vector<std::int64_t> offsets;       // (sequences + 1), the first is 0, the last is tokens
  std::vector<std::int64_t> classes;       // (sequences); empty for a score
  std::vector<float> scores;               // (sequences); empty for classes
  std::vector<std::int64_t> examples;  // (sequences): index in the split, the key of its dropout
  std::int64_t max_length = 0;         // longest sequence
  std::int64_t size() const { return static_cast<std::int64_t>(examples.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
};

/// Packs the examples named in `examples`, in that order. `first_position` is
/// EncoderConfig::first_position(): RoBERTa's positions begin behind its pad id, and a pad token
/// inside a text has the pad id as its position and does not count; BERT's begin at 0.
PackedBatch pack(const TokenisedSplit& split, std::span<const std::int64_t> examples,
                 std::int64_t first_position);

/// Positions as RoBERTa computes them from ids (a pad id inside a sequence has position pad and
/// does not count); for inputs that come with padding (petlab-trainer forward).
std::vector<std::int64_t> roberta_positions(std::span<const std::int64_t> ids, std::int64_t pad);

}  // namespace petlab::trainer
