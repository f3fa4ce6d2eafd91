#pragma once

#include <cstddef>
#include <string_view>

namespace petlab::base {

/// True if a text's lines end with carriage returns only, which no reader here supports: one occurs
/// before the last byte, and there is no newline.
inline bool lines_end_with_cr(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return false;
  const std::size_t first = text.find('\r');
  return first != std::string_view::npos && first + 1 < text.size();
}
inline constexpr std::string_view kLinesEndWithCr =
    "found lines that end with a carriage return (CR) alone, expected newlines (LF or CRLF)";

/// U+FEFF in UTF-8, which some editors write at the start of a file.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// The text without a leading byte order mark.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

}  // namespace petlab::base
