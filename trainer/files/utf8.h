#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petlab::trainer {

/// The code point at `position`, which is moved behind it. The text must be UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& position);

/// Appends a code point (no surrogate, at most U+10FFFF).
void append_utf8(char32_t code_point, std::string& text);

/// The text with what is not UTF-8 replaced by U+FFFD, as Python's errors="replace" does it.
std::string replace_invalid_utf8(std::string_view text);

/// Unicode's White_Space property.
bool is_white_space(char32_t code_point);

}  // namespace petlab::trainer
