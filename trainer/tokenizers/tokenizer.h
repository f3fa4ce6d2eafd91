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

/// One tokenised input.
struct Encoding {
  std::vector<std::int32_t> ids;       // (tokens)
  std::vector<std::int32_t> type_ids;  // (tokens); all 0 where the backbone has one type
};

/// What stands around the texts: `[CLS] A [SEP] B [SEP]`, `<s> A </s></s> B </s>`.
struct SpecialTokens {
  std::vector<std::int32_t> before;   // before the first text
  std::vector<std::int32_t> between;  // between the two of a pair
  std::vector<std::int32_t> after;    // after the last
  std::int32_t second_type = 0;       // type id of the second text and what follows it
  std::int32_t pad = 0;
};

/// Text to ids, as Hugging Face's fast tokenizer of the same files does it. Immutable and usable
/// from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of a text alone, without what stands around it; added tokens in the text become their ids.
  /// Throws std::invalid_argument naming the byte where the text is not UTF-8.
  std::vector<std::int32_t> tokenize(std::string_view text) const;

  /// Ids with special tokens, truncated longest-first to `max_tokens` (special ones included; 0: no
  /// limit) as the fast tokenizers do it (golden/tokenizers/README.md, "pairs"). Throws
  /// std::invalid_argument as tokenize does, or where max_tokens is smaller than the special
  /// tokens.
  Encoding encode(std::string_view text, std::optional<std::string_view> pair = std::nullopt,
                  std::int64_t max_tokens = 0) const;

  /// Text of ids. Ids beyond the vocabulary say nothing, as in Hugging Face's fast tokenizers: a
  /// model may have more rows than there are tokens, and choose one of those.
  virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special) const = 0;

  const SpecialTokens& special() const { return special_; }
  /// Largest id + 1.
  std::int64_t vocab_size() const { return vocab_size_; }

 protected:
  /// Appends the ids of a stretch of text that is UTF-8 and holds no added token.
  virtual void append(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The text in which added tokens are found that are `normalized`.
  virtual std::string normalize(std::string_view text) const = 0;
  /// Has those found in texts; vocab_size() then covers them, too.
  void set_added(const std::vector<AddedToken>& tokens);
  /// The added token of that id, or nullptr.
  const AddedToken* added_token(std::int32_t id) const;

  SpecialTokens special_;
  std::int64_t vocab_size_ = 0;

 private:
  AddedTokens added_;       // found in the text as it is written
  AddedTokens normalized_;  // found in what is left of it, normalised
};

/// The texts of a tokenizer's files, with their names for messages. Absent: there is no such file.
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

/// What load_tokenizer makes of a folder's files. Throws Error.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files);

/// The tokenizer of a backbone's folder: `vocab.txt` is WordPiece, `vocab.json` with `merges.txt`
/// byte-level BPE, `spiece.model` T5's unigram model (with the <extra_id_N> that
/// `tokenizer_config.json` counts, or 100), and `tokenizer.json` is any of them where none is
/// there; `tokenizer_config.json`
/// gives case folding, special and added tokens and where the merges are. Where it has no
/// `added_tokens_decoder`, `special_tokens_map.json`, `added_tokens.json` and the `added_tokens` of
/// tokenizer.json name them. Throws Error naming the file and what was found and expected.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace petlab::trainer
