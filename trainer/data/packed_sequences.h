#pragma once

#include <cstdint>
#include <vector>

namespace petlab::trainer {

/// Sequences of tokens end to end, without padding: what a backbone reads at once, from the
/// tokenizer to attention. The sequences of trial 0 come first, then those of trial 1, … An
/// encoder's input is one of these; a text-to-text model's is two, sources and targets, whose
/// sequences belong together one by one.
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

/// What an encoder reads.
struct EncoderInput {
  PackedSequences sequences;
  std::vector<std::int64_t> type_ids;  // (tokens); empty: all 0
  /// (tokens); empty: as the backbone counts them in each sequence.
  std::vector<std::int64_t> position_ids;
};

}  // namespace petlab::trainer
