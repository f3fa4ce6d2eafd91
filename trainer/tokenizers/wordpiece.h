#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/vocabulary.h"

namespace petlab::trainer {

/// The options of BERT's tokenizer in tokenizer_config.json, with Hugging Face's defaults.
struct WordPieceOptions {
  bool lower_case = true;
  bool strip_accents = true;  // Hugging Face's default: same as lower_case
  bool split_chinese = true;  // put white space around CJK ideographs
  std::string unk_token = "[UNK]";
  std::string cls_token = "[CLS]";
  std::string sep_token = "[SEP]";
  std::string pad_token = "[PAD]";
  std::string mask_token = "[MASK]";
  std::vector<AddedToken> added;  // in addition to the tokens above
};

/// The words that the tokenizer splits into pieces: `text` cleaned, and split at white space and
/// punctuation.
std::vector<std::string> wordpiece_words(std::string_view text, const WordPieceOptions& options);

/// BERT's tokenizer: cleans texts, splits them at white space and punctuation, and covers each word
/// with the longest pieces of the vocabulary.
class WordPiece final : public Tokenizer {
 public:
  /// Throws Error, with the vocabulary's file, if it lacks a special token (except the mask).
  WordPiece(Vocabulary vocabulary, const WordPieceOptions& options);

  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 protected:
  void append(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::optional<std::string_view> vocabulary_entry(std::int32_t id) const override {
    return vocabulary_.token(id);
  }
  std::string normalize(std::string_view text) const override;

 private:
  void append_word(std::string_view word, std::size_t characters,
                   std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary_;
  WordPieceOptions options_;
  std::unordered_map<std::string_view, std::int32_t> continuations_;  // "##ing" by "ing"
  std::size_t longest_piece_ = 0;                                     // in bytes
  std::int32_t unknown_ = 0;
};

}  // namespace petlab::trainer
