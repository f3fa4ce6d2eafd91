#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tokenizers/added_tokens.h"

namespace petlab::trainer {

/// A tokenised input.
struct Encoding {
  std::vector<std::int32_t> ids;       // (tokens)
  std::vector<std::int32_t> type_ids;  // (tokens); all 0 if the backbone has only one type
};

/// The special tokens around texts: `[CLS] A [SEP] B [SEP]`, `<s> A </s></s> B </s>`.
struct SpecialTokens {
  std::vector<std::int32_t> before;   // before the first text
  std::vector<std::int32_t> between;  // between the two of a pair
  std::vector<std::int32_t> after;    // after the last
  std::int32_t second_type = 0;       // type id of the second text and the tokens after it
  std::int32_t pad = 0;
};

/// Converts text to ids, with the same result as Hugging Face's fast tokenizer for the same files.
/// Immutable and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Returns the ids of a text, without special tokens around it; added tokens in the text become
  /// their ids. Throws std::invalid_argument, with the byte, if the text is not UTF-8.
  std::vector<std::int32_t> tokenize(std::string_view text) const;

  /// Returns ids with special tokens, truncated longest-first to `max_tokens` (including special
  /// tokens; 0: no limit), like the fast tokenizers. Each text keeps its first tokens, or its last
  /// ones with keep_last_tokens. Throws std::invalid_argument as tokenize, or if max_tokens is
  /// smaller than the number of special tokens.
  Encoding encode(std::string_view text, std::optional<std::string_view> pair = std::nullopt,
                  std::int64_t max_tokens = 0) const;

  /// Converts ids to text. Like Hugging Face's fast tokenizers, ignores ids beyond the vocabulary:
  /// a model may have more rows than there are tokens, and choose one of those.
  virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special) const = 0;

  /// Truncates texts at their beginning: `truncation_side: left`.
  void keep_last_tokens() { keeps_last_ = true; }

  const SpecialTokens& special() const { return special_; }
  /// The largest id + 1.
  std::int64_t vocab_size() const { return vocab_size_; }
  /// The token with this id; empty if there is none.
  std::string_view token(std::int32_t id) const;
  /// The first token beyond an embedding of `rows` rows that needs no literal mention in a text: a
  /// token around texts, or an entry of the vocabulary that is not an added token.
  std::optional<std::int32_t> token_beyond(std::int64_t rows) const;

 protected:
  /// Appends the ids of a stretch of text, which is UTF-8 and contains no added token.
  virtual void append(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The entry of the vocabulary with this id, if any.
  virtual std::optional<std::string_view> vocabulary_entry(std::int32_t id) const = 0;
  /// The text in which `normalized` added tokens are found.
  virtual std::string normalize(std::string_view text) const = 0;
  /// Sets the tokens to find in texts. vocab_size() then covers them, too.
  void set_added(const std::vector<AddedToken>& tokens);
  /// The added token with this id, or nullptr.
  const AddedToken* added_token(std::int32_t id) const;

  SpecialTokens special_;
  std::int64_t vocab_size_ = 0;

 private:
  bool keeps_last_ = false;
  AddedTokens added_;       // found in the original text
  AddedTokens normalized_;  // found in the normalised text between those
};

/// The texts of a tokenizer's files, with their names for messages. Missing files are absent.
struct TokenizerFiles {
  struct File {
    std::string name;
    std::string_view text;
  };
  std::optional<File> vocab_txt = std::nullopt;
  std::optional<File> vocab_json = std::nullopt;
  std::optional<File> merges = std::nullopt;
  std::optional<File> config = std::nullopt;  // tokenizer_config.json
  std::optional<File> special_tokens_map = std::nullopt;
  std::optional<File> added_tokens = std::nullopt;
  std::optional<File> tokenizer_json = std::nullopt;
  std::optional<File> spiece_model = std::nullopt;
};

/// Creates the tokenizer that load_tokenizer returns, from a folder's files. Throws Error.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files);

/// Loads the tokenizer of a backbone's folder. `vocab.txt` is WordPiece, `vocab.json` with
/// `merges.txt` is byte-level BPE, and `spiece.model` is T5's unigram model (with as many
/// <extra_id_N> as `tokenizer_config.json` says, or 100). If none of these exists, `tokenizer.json`
/// can be any of them.
///
/// `tokenizer_config.json` sets case folding, special and added tokens, the side on which texts are
/// truncated (or else tokenizer.json does), and the name of the merges' file. Without
/// `added_tokens_decoder` in it, `special_tokens_map.json`, `added_tokens.json` and the
/// `added_tokens` of tokenizer.json define these tokens. Throws Error with the file and what was
/// found and expected.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace petlab::trainer
