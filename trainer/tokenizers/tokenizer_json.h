#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/tokenizers/unigram_model.h"

namespace petlab::trainer {

/// `tokenizer.json`, the single file of Hugging Face's tokenizers library, limited to BERT's
/// WordPiece, RoBERTa's and ModernBERT's byte-level BPE, and T5's unigram model.
struct TokenizerJson {
  bool byte_bpe = false;  // else WordPiece, unless `unigram` is set
  std::optional<UnigramModel> unigram = std::nullopt;
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // for byte_bpe, in order
  /// The other settings, by their names in tokenizer_config.json: cls_token and sep_token; for
  /// WordPiece also unk_token, do_lower_case, strip_accents (or null) and tokenize_chinese_chars;
  /// for byte-level BPE also add_prefix_space; for unigram only eos_token and unk_token.
  nlohmann::json settings() const;

  std::string cls_token;
  std::string sep_token;
  std::string unk_token;
  std::string eos_token;
  bool lower_case = true;
  int strip_accents = -1;  // -1: same as lower_case
  bool split_chinese = true;
  bool add_prefix_space = false;
  // Only for byte_bpe, as in ByteBpeOptions.
  bool single_separator = false;
  std::int32_t second_type = 0;
  bool compose = false;
};

/// Throws Error, with the file, the field and what was found and expected, for an unsupported
/// tokenizer.
TokenizerJson read_tokenizer_json(const nlohmann::json& json, const std::string& file);

/// Converts its `added_tokens` to the added_tokens_decoder of tokenizer_config.json: {"id":
/// {content, …}}. Throws Error as read_tokenizer_json.
nlohmann::json added_tokens_decoder(const nlohmann::json& json, const std::string& file);

}  // namespace petlab::trainer
