#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petlab::trainer {

/// Returns the code point at `position` and moves `position` past it. The text must be UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& position);

/// Appends a code point (not a surrogate, at most U+10FFFF).
void append_utf8(char32_t code_point, std::string& text);

/// Replaces invalid UTF-8 by U+FFFD, like Python's errors="replace".
std::string replace_invalid_utf8(std::string_view text);

/// Unicode's White_Space property.
bool is_white_space(char32_t code_point);

}  // namespace petlab::trainer
