#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/vocabulary.h"

namespace petlab::trainer {

/// Parses the merges of `merges.txt`, in order: pairs of tokens in GPT-2's byte alphabet. Skips a
/// first line `#version …`. Throws Error with file and line.
std::vector<std::pair<std::string, std::string>> parse_merges(std::string_view text,
                                                              const std::string& file);

struct ByteBpeOptions {
  /// Adds a space before each stretch of text that does not begin with one.
  bool add_prefix_space = false;
  /// The special tokens around texts. If all are empty, there are none (plain GPT-2).
  std::string cls_token;
  std::string sep_token;
  std::string pad_token;
  /// A pair is `[CLS] A [SEP] B [SEP]`, as ModernBERT's, not `<s> A </s></s> B </s>`.
  bool single_separator = false;
  std::int32_t second_type = 0;  // type id of a pair's second text
  bool compose = false;          // text is normalised to Unicode's form NFC
  /// Tokens found in the text as written, including cls, sep and pad.
  std::vector<AddedToken> added;
};

/// GPT-2's, RoBERTa's and ModernBERT's tokenizer: splits words by GPT-2's pattern, then merges the
/// bytes of each word in the order of the merges.
class ByteBpe final : public Tokenizer {
 public:
  /// Throws Error, with `merges_file` or the vocabulary's file, if a merge or one of the 256 bytes
  /// is not in the vocabulary.
  ByteBpe(Vocabulary vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
          const std::string& merges_file, const ByteBpeOptions& options);

  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 protected:
  void append(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::optional<std::string_view> vocabulary_entry(std::int32_t id) const override {
    return vocabulary_.token(id);
  }
  std::string normalize(std::string_view text) const override;

 private:
  /// The result and the rank of merging two neighbouring tokens.
  struct Merge {
    std::uint64_t pair = ~std::uint64_t{0};
    std::int32_t rank = 0;
    std::int32_t merged = 0;
  };
  using Cache = std::unordered_map<std::string, std::vector<std::int32_t>>;

  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  void merge_short(std::vector<std::int32_t>& symbols) const;
  void merge_long(std::vector<std::int32_t>& symbols) const;
  void append_word(std::string_view word, Cache* cache, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary_;
  bool add_prefix_space_ = false;
  bool compose_ = false;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  // open addressing; the size is a power of two
  // Words recur often. A thread that finds the cache locked does without it.
  mutable std::mutex cache_mutex_;
  mutable Cache cache_;
};

/// Writes bytes in GPT-2's alphabet of printable characters, one per byte.
std::string in_byte_alphabet(std::string_view bytes);

/// The end of the word that begins at `begin`, by GPT-2's pattern
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word_end(std::string_view text, std::size_t begin);

}  // namespace petlab::trainer
