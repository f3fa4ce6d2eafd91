#include "base/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace petlab::base {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Escapes characters that are invisible on a terminal, as in JSON: U+200B to U+200F, U+2028 to
// U+202E, U+2060 to U+2064 and the byte order mark.
std::string with_visible_marks(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = [&](std::size_t offset) -> unsigned {
      return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0;
    };
    const unsigned code = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    const auto is_in = [&](unsigned low, unsigned high) { return low <= code && code <= high; };
    const bool three_bytes = (byte(0) & 0xF0) == 0xE0;
    if (three_bytes && (is_in(0x200B, 0x200F) || is_in(0x2028, 0x202E) || is_in(0x2060, 0x2064) ||
                        code == 0xFEFF)) {
      result += fmt::format("\\u{:04x}", code);
      at += 2;
    } else {
      result += text[at];
    }
  }
  return result;
}

// Cuts a text at a character boundary.
std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", excerpt(text)); }

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 60;
  const bool whole = text.size() <= kMost;
  const nlohmann::json part(whole ? text : first_bytes(text, kMost - 3));
  const std::string dumped = part.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // nlohmann::json does not escape DEL and the control characters from U+0080.
  return with_visible_marks(printable(std::string_view(dumped).substr(1, dumped.size() - 2))) +
         (whole ? "" : "…");
}

std::string list_in_quotes(std::span<const std::string> texts, std::size_t most) {
  std::string list;
  for (const std::string& text : texts.first(std::min(most, texts.size()))) {
    list += (list.empty() ? "" : ", ") + in_quotes(text);
  }
  if (texts.size() > most) list += fmt::format(" and {} more", texts.size() - most);
  return list;
}

std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a group of keys";
  if (value.is_null()) return "nothing";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = first_invalid_utf8(text).value_or(text.size());
    for (std::size_t i = 0; i < valid; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      // U+0080 to U+009F are control characters, too.
      const bool two_bytes = c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
      if (c < 0x20 || c == 0x7F || two_bytes) {
        result += kReplacement;
        if (two_bytes) ++i;
      } else {
        result += text[i];
      }
    }
    if (valid < text.size()) result += kReplacement;
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return result;
}

std::vector<std::string> printable_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(printable(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string printable_message(std::string_view text) {
  constexpr std::size_t kMostBytes = 2000;
  constexpr std::size_t kEnd = 500;
  constexpr std::size_t kMostLines = 120;
  std::string message;
  std::vector<std::string> lines = printable_lines(text);
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    const std::string_view line = lines[i];
    message += i == 0 ? "" : "\n";
    if (line.size() <= kMostBytes) {
      message += line;
      continue;
    }
    // Keep the end of a message, which says what to do.
    const std::size_t end = first_bytes(line, line.size() - kEnd).size();
    message += first_bytes(line, kMostBytes - kEnd);
    message += "…";
    message += line.substr(end);
  }
  if (lines.size() > kMostLines) {
    message += fmt::format("\n… and {} more lines", lines.size() - kMostLines);
  }
  return message;
}

}  // namespace petlab::base
