#include "trainer/files/utf8.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace petlab::trainer {

char32_t next_code_point(std::string_view text, std::size_t& position) {
  UChar32 code_point = 0;
  // Unlike its unsafe variant, this macro never reads beyond the text.
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
