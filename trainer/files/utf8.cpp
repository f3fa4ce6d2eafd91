#include "trainer/files/utf8.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cstdint>
#include <cstring>

namespace petlab::trainer {

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  std::size_t position = 0;
  while (position < text.size()) {
    std::uint64_t eight = 0;
    while (position + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + position, sizeof(eight));
      if ((eight & kHighBits) != 0) break;
      position += sizeof(eight);
    }
    if (position == text.size()) break;
    const std::size_t begin = position;
    UChar32 code_point = 0;
    U8_NEXT(text.data(), position, text.size(), code_point);
    if (code_point < 0) return begin;
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  UChar32 code_point = 0;
  // U8_NEXT, not its unsafe sister: it stays inside the text whatever is there.
  U8_NEXT_OR_FFFD(text.data(), position, text.size(), code_point);
  return static_cast<char32_t>(code_point);
}

void append_utf8(char32_t code_point, std::string& text) {
  char bytes[U8_MAX_LENGTH];
  std::size_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, code_point);
  text.append(bytes, length);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    append_utf8(next_code_point(text, position), result);
  }
  return result;
}

bool is_white_space(char32_t code_point) {
  return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0;
}

}  // namespace petlab::trainer
