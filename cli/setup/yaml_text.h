#pragma once

#include <algorithm>
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

}  // namespace petlab::cli
