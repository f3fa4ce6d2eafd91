#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace petlab::base {

std::size_t find_invalid_utf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  std::size_t at = 0;
  while (at < size) {
    // Nearly everything is ASCII: eight bytes at a time.
    while (at + 8 <= size) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + at, 8);
      if ((word & 0x8080808080808080U) != 0) break;
      at += 8;
    }
    if (at == size) break;
    const unsigned char lead = bytes[at];
    if (lead < 0x80) {
      ++at;
      continue;
    }
    std::size_t more = 0;
    unsigned char low = 0x80;  // bounds of the second byte shut out overlong forms and surrogates
    unsigned char high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return at;
    }
    if (size - at <= more || bytes[at + 1] < low || bytes[at + 1] > high) return at;
    for (std::size_t i = 2; i <= more; ++i) {
      if ((bytes[at + i] & 0xC0) != 0x80) return at;
    }
    at += more + 1;
  }
  return std::string_view::npos;
}

}  // namespace petlab::base
