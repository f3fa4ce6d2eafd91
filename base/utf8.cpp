#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace petlab::base {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080U;

std::uint64_t load8(const char* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* p = begin;
  const auto continues = [end](const char* at, unsigned low, unsigned high) {
    const unsigned byte = at < end ? static_cast<unsigned char>(*at) : 0U;
    return byte >= low && byte <= high;
  };
  while (p < end) {
    while (end - p >= 32 &&
           ((load8(p) | load8(p + 8) | load8(p + 16) | load8(p + 24)) & kHighBits) == 0) {
      p += 32;
    }
    while (p < end && static_cast<signed char>(*p) >= 0) ++p;
    if (p == end) break;
    // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF
    // (table 3-7 of the Unicode standard).
    const unsigned lead = static_cast<unsigned char>(*p);
    bool valid = false;
    int length = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
      valid = continues(p + 1, 0x80, 0xBF);
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      length = 3;
      valid = continues(p + 1, lead == 0xE0 ? 0xA0U : 0x80U, lead == 0xED ? 0x9FU : 0xBFU) &&
              continues(p + 2, 0x80, 0xBF);
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      length = 4;
      valid = continues(p + 1, lead == 0xF0 ? 0x90U : 0x80U, lead == 0xF4 ? 0x8FU : 0xBFU) &&
              continues(p + 2, 0x80, 0xBF) && continues(p + 3, 0x80, 0xBF);
    }
    if (!valid) return static_cast<std::size_t>(p - begin);
    p += length;
  }
  return std::nullopt;
}

}  // namespace petlab::base
