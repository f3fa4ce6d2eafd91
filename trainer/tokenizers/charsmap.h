#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// SentencePiece's compiled normalisation: a trie of replaced texts (a double array by darts-clone)
/// and their replacements. It is applied as in Hugging Face's tokenizers library, which looks up
/// whole graphemes.
class Charsmap {
 public:
  /// Without bytes, nothing is replaced. Throws Error, beginning with `what`, for an invalid trie.
  Charsmap(std::string_view bytes, const std::string& what);

  /// The text must be UTF-8.
  std::string normalize(std::string_view text) const;

 private:
  /// The replacement of the shortest prefix of `text` in the trie.
  std::optional<std::string_view> find(std::string_view text) const;
  void append_grapheme(std::string_view grapheme, std::string& normalized) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace petlab::trainer
