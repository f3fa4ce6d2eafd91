#pragma once

#include <string_view>

namespace petlab::base {

/// ASCII white space, as in C.
inline constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

/// A view of the text without white space at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view space = kWhiteSpace) {
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

}  // namespace petlab::base
