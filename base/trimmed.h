#pragma once

#include <string_view>

namespace petlab::base {

/// The ASCII characters that C calls white space.
inline constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

/// The text without such characters at its ends; a view of it.
inline std::string_view trimmed(std::string_view text, std::string_view space = kWhiteSpace) {
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

}  // namespace petlab::base
