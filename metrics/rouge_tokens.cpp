#include "metrics/rouge_tokens.h"

#include <cstring>

#include "metrics/porter_stemmer.h"

namespace petlab::metrics {
namespace {

constexpr std::size_t kStems = 1 << 13;
constexpr std::size_t kStemmedFrom = 4;  // shorter tokens are not stemmed

// Maps each byte of a token to its lower case, and separators to 0.
constexpr std::array<char, 256> token_bytes() {
  std::array<char, 256> bytes{};
  for (int c = 'a'; c <= 'z'; ++c) {
    bytes[static_cast<std::size_t>(c)] = static_cast<char>(c);
    bytes[static_cast<std::size_t>(c - 'a' + 'A')] = static_cast<char>(c);
  }
  for (int c = '0'; c <= '9'; ++c) bytes[static_cast<std::size_t>(c)] = static_cast<char>(c);
  return bytes;
}
constexpr std::array<char, 256> kTokenBytes = token_bytes();

}  // namespace

RougeTokenizer::RougeTokenizer(bool stem) : stem_(stem), stems_(stem ? kStems : 0) {}

std::size_t RougeTokenizer::stem(char* word, std::size_t size) {
  if (size > kLongest) return porter_stem(word, size);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, word, size < 8 ? size : 8);
  if (size > 8) std::memcpy(&high, word + 8, size - 8);
  std::uint64_t hash = (low ^ high * 0xBF58476D1CE4E5B9ULL) * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 32;
  Stem& entry = stems_[(hash * 0x94D049BB133111EBULL >> 40) % kStems];
  if (entry.word_size != size || std::memcmp(entry.word.data(), word, size) != 0) {
    entry.word_size = static_cast<std::uint8_t>(size);
    std::memcpy(entry.word.data(), word, size);
    const std::size_t stemmed = porter_stem(word, size);
    entry.stem_size = static_cast<std::uint8_t>(stemmed);
    std::memcpy(entry.stem.data(), word, stemmed);
    return stemmed;
  }
  std::memcpy(word, entry.stem.data(), entry.stem_size);
  return entry.stem_size;
}

// Only two characters beyond ASCII have a lower case that contains a letter of a-z: the Kelvin sign
// U+212A (k) and the dotted capital I U+0130 (i and a combining dot, which separates).
void RougeTokenizer::tokenize(std::string_view text, std::vector<std::string_view>& out) {
  if (used_ == buffers_.size()) buffers_.emplace_back();
  std::vector<char>& buffer = buffers_[used_++];
  buffer.resize(text.size());
  char* to = buffer.data();
  char* start = to;
  const auto flush = [&] {
    auto size = static_cast<std::size_t>(to - start);
    if (size == 0) return;
    if (stem_ && size >= kStemmedFrom) size = stem(start, size);
    if (size > 0) out.emplace_back(start, size);
    start = to;
  };
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const auto byte = static_cast<unsigned char>(*p);
    if (kTokenBytes[byte] != 0) {
      *to++ = kTokenBytes[byte];
      ++p;
    } else if (byte == 0xE2 && end - p >= 3 && std::memcmp(p, "\xE2\x84\xAA", 3) == 0) {
      *to++ = 'k';
      p += 3;
    } else if (byte == 0xC4 && end - p >= 2 && p[1] == '\xB0') {
      *to++ = 'i';
      flush();
      p += 2;
    } else {
      flush();
      ++p;
    }
  }
  flush();
}

}  // namespace petlab::metrics
