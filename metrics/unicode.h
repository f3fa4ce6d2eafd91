#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// Reads the code point at `p` and moves `p` past it. The text must be valid UTF-8.
inline char32_t next_code_point(const char*& p) {
  const auto byte = [&p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    p += 1;
    return lead;
  }
  if (lead < 0xE0) {
    const char32_t c = ((lead & 0x1F) << 6) | (byte(1) & 0x3F);
    p += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = ((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    p += 3;
    return c;
  }
  const char32_t c =
      ((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F);
  p += 4;
  return c;
}

/// True for the 29 white space characters of Python's str.split() and str.isspace().
constexpr bool is_white_space(char32_t c) {
  if (c < 0x80) return c == 0x20 || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Removes trailing (Python's str.rstrip()), leading, or both kinds of white space.
std::string_view trim_right(std::string_view text);
std::string_view trim_left(std::string_view text);
std::string_view trim(std::string_view text);

/// Appends the parts of `text` separated by white space (Python's str.split()).
void split_white_space(std::string_view text, std::vector<std::string_view>& out);

/// True if `text` contains bytes beyond ASCII.
bool has_non_ascii(std::string_view text);

/// Replaces `out` by the lower case of `text` like Python's str.lower(): full Unicode mappings,
/// final sigma by context. `text` must not be a view of `out`.
void lower_case(std::string_view text, std::string& out);

/// The general categories that sacrebleu's tokenizer "intl" distinguishes.
enum CodePointClass : std::uint8_t { kOther, kPunctuation, kSymbol, kNumber };
/// By Unicode 17.0, like the `regex` package that sacrebleu uses.
CodePointClass code_point_class(char32_t c);

}  // namespace petlab::metrics
