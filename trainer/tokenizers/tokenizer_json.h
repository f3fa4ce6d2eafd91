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

/// `tokenizer.json`, the one file of Hugging Face's tokenizers library, as far as BERT's WordPiece,
/// RoBERTa's byte-level BPE and T5's unigram model have it.
struct TokenizerJson {
  bool byte_bpe = false;  // else WordPiece, unless unigram is there
  std::optional<UnigramModel> unigram = std::nullopt;
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // of byte_bpe, in order
  /// What it says of the rest, by tokenizer_config.json's names: cls_token, sep_token and, of
  /// WordPiece, unk_token, do_lower_case, strip_accents (or null), tokenize_chinese_chars, of
  /// byte-level BPE add_prefix_space; of unigram eos_token and unk_token alone.
  nlohmann::json settings() const;

  std::string cls_token;
  std::string sep_token;
  std::string unk_token;
  std::string eos_token;
  bool lower_case = true;
  int strip_accents = -1;  // -1: as lower_case
  bool split_chinese = true;
  bool add_prefix_space = false;
};

/// Throws Error naming the file, the field and what was found and expected where it is not such a
/// tokenizer.
TokenizerJson read_tokenizer_json(const nlohmann::json& json, const std::string& file);

/// Its `added_tokens` as tokenizer_config.json has them in added_tokens_decoder: {"id": {content,
/// …}}. Throws Error as read_tokenizer_json does.
nlohmann::json added_tokens_decoder(const nlohmann::json& json, const std::string& file);

}  // namespace petlab::trainer
