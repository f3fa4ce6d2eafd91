#pragma once

#include <cstdint>
#include <vector>

namespace petlab::trainer {

/// Sequences of tokens, packed without padding: the input of a backbone, from the tokenizer to
/// attention. The sequences of trial 0 come first, then those of trial 1, … An encoder's input is
/// one such object. A text-to-text model's input is two, sources and targets, with matching
/// sequences.
struct PackedSequences {
  std::vector<std::int64_t> ids;                    // (tokens)
  std::vector<std::int64_t> offsets{0};             // (sequences + 1); the last is tokens
  std::vector<std::int64_t> examples;               // (sequences): index in the split, which is the
                                                    // key of their dropout
  std::vector<std::int64_t> trial_sequences{0, 0};  // (K + 1): sequences [t[k], t[k + 1]) are trial
                                                    // k's
  std::int64_t tokens() const { return offsets.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t trials() const { return static_cast<std::int64_t>(trial_sequences.size()) - 1; }
  bool operator==(const PackedSequences&) const = default;
};

/// The input of an encoder.
struct EncoderInput {
  PackedSequences sequences;
  std::vector<std::int64_t> type_ids;  // (tokens); empty: all 0
  /// (tokens); empty: the backbone's own numbering within each sequence.
  std::vector<std::int64_t> position_ids;
};

}  // namespace petlab::trainer
