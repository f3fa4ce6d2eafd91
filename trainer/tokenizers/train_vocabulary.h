#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/tokenizers/wordpiece.h"

namespace petlab::trainer {

// Vocabularies of the lines of text files, by SentencePiece's trainer. The same texts and size give
// the same bytes; of few texts there may be fewer pieces than `size`. All throw Error naming the
// file that cannot be read, and where the size is too small for the texts' characters.

/// A SentencePiece unigram model (spiece.model) as T5's: pad 0, end 1, unknown 2, at most `size`
/// pieces in all.
std::string train_sentencepiece(const std::vector<std::filesystem::path>& texts, std::int64_t size);

/// A vocab.txt as BERT's, of at most `size` pieces: the five special tokens, [PAD] first, each
/// character at a word's begin and within one where the texts have it there, then the pieces that
/// byte-pair encoding of whole characters merges.
std::string train_wordpiece(const std::vector<std::filesystem::path>& texts, std::int64_t size,
                            const WordPieceOptions& options);

/// vocab.json and merges.txt as RoBERTa has them.
struct ByteBpeVocabulary {
  std::string vocab_json;
  std::string merges_txt;
};
/// At most `size` pieces: <s>, <pad>, </s>, <unk>, the 256 bytes, the merges, <mask>.
ByteBpeVocabulary train_byte_bpe(const std::vector<std::filesystem::path>& texts,
                                 std::int64_t size);

}  // namespace petlab::trainer
