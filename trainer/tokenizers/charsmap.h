#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// SentencePiece's normalisation, compiled: a trie of what is replaced (a double array as
/// darts-clone makes it) and the replacements. Applied as Hugging Face's tokenizers library does
/// it, which looks up whole graphemes.
class Charsmap {
 public:
  /// Empty bytes: nothing is replaced. Throws Error naming `what` where the trie does not fit.
  Charsmap(std::string_view bytes, const std::string& what);

  /// The text must be UTF-8.
  std::string normalize(std::string_view text) const;

 private:
  /// What replaces the shortest beginning of `text` that is in the trie.
  std::optional<std::string_view> find(std::string_view text) const;
  void append_grapheme(std::string_view grapheme, std::string& normalized) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace petlab::trainer
