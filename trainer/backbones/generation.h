#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backbones/t5.h"

namespace petlab::trainer {

/// Options of generation, as in Hugging Face's generate.
struct GenerationOptions {
  std::int64_t beams = 1;             // 1: greedy decoding
  std::int64_t max_tokens = 20;       // the end token included
  std::int64_t min_tokens = 0;        // before the end token
  std::int64_t no_repeat_ngrams = 0;  // n-grams of this length never repeat in a text; 0: no limit
  double length_penalty = 1;          // a text's score is its log probability / length^penalty
  /// If true, an input is done once `beams` texts have ended. Otherwise, it is done once no running
  /// text can beat the worst of them.
  bool early_stopping = false;
};

/// A generated text: its tokens, with the end token unless the limit cut it off.
struct GeneratedText {
  std::vector<std::int64_t> ids;
  /// With several beams, scored with options.length_penalty; with one, the log probability.
  double score = 0;
};

/// Returns the `options.beams` best texts for each of `sources` (of one trial), the best first.
/// Inputs do not influence each other, and finished ones leave the batch. Throws
/// std::invalid_argument for options out of range.
std::vector<std::vector<GeneratedText>> generate(const T5& model, const PackedSequences& sources,
                                                 const Hooks& hooks,
                                                 const GenerationOptions& options);

}  // namespace petlab::trainer
