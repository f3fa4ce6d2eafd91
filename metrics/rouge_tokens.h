#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// Computes rouge-score's tokens of texts. Caches the stems of recent words in a table of fixed
/// size. Owns buffers, so each thread needs its own.
class RougeTokenizer {
 public:
  explicit RougeTokenizer(bool stem);

  /// Appends the tokens of `text`; they are valid until clear().
  void tokenize(std::string_view text, std::vector<std::string_view>& out);
  /// Invalidates all tokens.
  void clear() { used_ = 0; }

 private:
  static constexpr std::size_t kLongest = 15;  // longer words are stemmed each time
  struct Stem {
    std::array<char, kLongest> word;
    std::uint8_t word_size = 0;
    std::array<char, kLongest> stem;
    std::uint8_t stem_size = 0;
  };
  std::size_t stem(char* word, std::size_t size);

  bool stem_;
  std::vector<Stem> stems_;
  // One buffer per text, so that buffers do not move while tokens view them.
  std::vector<std::vector<char>> buffers_;
  std::size_t used_ = 0;
};

}  // namespace petlab::metrics
