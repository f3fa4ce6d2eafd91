#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/tokenizers/wordpiece.h"

namespace petlab::trainer {

// Train vocabularies on the lines of text files, with SentencePiece's trainer. The same texts and
// size give the same bytes. From little text, they may have fewer pieces than `size`. They throw
// Error for an unreadable file, with its name, and if `size` is too small for the characters of the
// texts.

/// Trains a SentencePiece unigram model (spiece.model) like T5's: pad 0, end 1, unknown 2, at most
/// `size` pieces in all.
std::string train_sentencepiece(const std::vector<std::filesystem::path>& texts, std::int64_t size);

/// Trains a vocab.txt like BERT's, of at most `size` pieces: the five special tokens, [PAD] first;
/// each character that occurs at the beginning of a word and each that occurs inside one; then the
/// pieces that byte-pair encoding of whole characters merges.
std::string train_wordpiece(const std::vector<std::filesystem::path>& texts, std::int64_t size,
                            const WordPieceOptions& options);

/// vocab.json and merges.txt in RoBERTa's format.
struct ByteBpeVocabulary {
  std::string vocab_json;
  std::string merges_txt;
};
/// Trains at most `size` pieces: <s>, <pad>, </s>, <unk>, the 256 bytes, the merges, <mask>.
ByteBpeVocabulary train_byte_bpe(const std::vector<std::filesystem::path>& texts,
                                 std::int64_t size);

}  // namespace petlab::trainer
