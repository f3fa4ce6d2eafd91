#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// rouge-score's tokens of texts. Remembers the stems of recent words in a table of fixed size;
/// owns buffers, so each thread has its own.
class RougeTokenizer {
 public:
  explicit RougeTokenizer(bool stem);

  /// Appends the tokens of `text`; they live until clear().
  void tokenize(std::string_view text, std::vector<std::string_view>& out);
  /// Ends the life of all tokens.
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
  // Each text has its own buffer, so that one keeps its place while tokens view it.
  std::vector<std::vector<char>> buffers_;
  std::size_t used_ = 0;
};

}  // namespace petlab::metrics
