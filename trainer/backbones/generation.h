#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backbones/t5.h"

namespace petlab::trainer {

/// How texts are generated, in the meaning of Hugging Face's generate.
struct GenerationOptions {
  std::int64_t beams = 1;             // 1: the best token each time
  std::int64_t max_tokens = 20;       // the end token counts
  std::int64_t min_tokens = 0;        // before the end token
  std::int64_t no_repeat_ngrams = 0;  // no so many tokens twice in a text; 0: any
  double length_penalty = 1;          // a text's score is its log probability / length^penalty
  /// Whether an input is done once `beams` texts have ended; else when no other can become better
  /// than the worst of them.
  bool early_stopping = false;
};

/// A text: its tokens, the end token included where it ended by itself.
struct GeneratedText {
  std::vector<std::int64_t> ids;
  /// Of several beams by options.length_penalty, of one the log probability.
  double score = 0;
};

/// For each of `sources` (of one trial) its `options.beams` best texts, the best first. An input's
/// texts do not depend on the others, and inputs that are done leave. Throws std::invalid_argument
/// for options that are out of range.
std::vector<std::vector<GeneratedText>> generate(const T5& model, const PackedSequences& sources,
                                                 const Hooks& hooks,
                                                 const GenerationOptions& options);

}  // namespace petlab::trainer
