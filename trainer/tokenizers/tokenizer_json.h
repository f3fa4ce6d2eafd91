#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace petlab::trainer {

/// `tokenizer.json`, the one file of Hugging Face's tokenizers library, as far as BERT's WordPiece
/// and RoBERTa's byte-level BPE have it.
struct TokenizerJson {
  bool byte_bpe = false;  // else WordPiece
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // of byte_bpe, in order
  /// What it says of the rest, by tokenizer_config.json's names: cls_token, sep_token and, of
  /// WordPiece, unk_token, do_lower_case, strip_accents (or null), tokenize_chinese_chars, of
  /// byte-level BPE add_prefix_space.
  nlohmann::json settings() const;

  std::string cls_token;
  std::string sep_token;
  std::string unk_token;
  bool lower_case = true;
  int strip_accents = -1;  // -1: as lower_case
  bool split_chinese = true;
  bool add_prefix_space = false;
};

/// Throws Error naming the file, the field and what was found and wanted where it is not such a
/// tokenizer.
TokenizerJson read_tokenizer_json(const nlohmann::json& json, const std::string& file);

/// Its `added_tokens` as tokenizer_config.json has them in added_tokens_decoder: {"id": {content,
/// …}}. Throws Error as read_tokenizer_json does.
nlohmann::json added_tokens_decoder(const nlohmann::json& json, const std::string& file);

}  // namespace petlab::trainer
