#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/examples.h"
#include "trainer/data/packed_sequences.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {

/// The tokenised examples of a split, one after another.
struct TokenisedSplit {
  std::vector<std::int32_t> ids;       // (all tokens)
  std::vector<std::int32_t> type_ids;  // (all tokens)
  std::vector<std::int64_t> offsets;   // (examples + 1): example e is [offsets[e], offsets[e + 1])
  sweeps::TaskKind kind = sweeps::TaskKind::classification;
  std::vector<std::int32_t> classes;  // (examples), for classification; else empty
  std::vector<float> scores;          // (examples), for regression; else empty
  /// The target texts of the examples, each with its end token. Offsets are empty if the split was
  /// tokenised for an encoder.
  std::vector<std::int32_t> target_ids;      // (all target tokens)
  std::vector<std::int64_t> target_offsets;  // (examples + 1)
  std::vector<std::string> references;       // (examples), unmodified text targets; else empty
  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t tokens(std::int64_t example) const {
    return offsets[static_cast<std::size_t>(example) + 1] -
           offsets[static_cast<std::size_t>(example)];
  }
};

/// Tokenises every example, truncated to `max_tokens`.
TokenisedSplit tokenise(const Split& split, const Tokenizer& tokenizer, std::int64_t max_tokens);

/// The maximum numbers of tokens in an example, special ones included.
struct TokenLimits {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

/// Tokenises sources and targets in a text-to-text model's form of the task
/// (sweeps/text_to_text.h).
TokenisedSplit tokenise_texts(const Split& split, const sweeps::TaskDeclaration& task,
                              const Tokenizer& tokenizer, const TokenLimits& limits);

/// Several examples as one packed input, with their targets.
struct PackedBatch {
  EncoderInput input;
  sweeps::TaskKind kind = sweeps::TaskKind::classification;
  std::vector<std::int64_t> classes;  // (sequences), for classification; else empty
  std::vector<float> scores;          // (sequences), for regression; else empty
  /// The target texts, each with its end token, for a text-to-text split; else no sequences.
  PackedSequences targets;
  std::int64_t size() const { return input.sequences.sequences(); }
};

/// Packs the examples listed in `examples`, in that order, for one trial.
PackedBatch pack(const TokenisedSplit& split, std::span<const std::int64_t> examples);
/// The inputs and target texts of several trials' batches in one, for a pass that they share:
/// batches[k] is trial k's. It has no classes and scores.
PackedBatch joined(std::span<const PackedBatch> batches);

/// The position of each token in its sequence, from `first_position`
/// (EncoderConfig::first_position()). RoBERTa's positions begin after its pad id; a pad token
/// inside a text has the pad id as its position and does not advance the count. BERT's begin at 0.
std::vector<std::int64_t> counted_positions(const PackedSequences& sequences,
                                            std::int64_t first_position);

/// Computes positions from ids, as RoBERTa does (a pad id inside a sequence has position pad and
/// does not advance the count). For inputs with padding (petlab-trainer forward).
std::vector<std::int64_t> roberta_positions(std::span<const std::int64_t> ids, std::int64_t pad);

}  // namespace petlab::trainer
