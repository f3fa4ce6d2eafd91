#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace petlab::cli {

/// Formats a text as a one-line YAML scalar: in single quotes, or with escapes if it contains
/// control characters.
inline std::string yaml_text(const std::string& text) {
  if (std::any_of(text.begin(), text.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

/// A name made of `text`: letters, digits, "-", "_" and "."; all else becomes "-".
inline std::string name_from(std::string text) {
  constexpr std::size_t kMostBytes = 90;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '-';
  }
  text.resize(std::min(text.size(), kMostBytes));
  return text;
}

}  // namespace petlab::cli
