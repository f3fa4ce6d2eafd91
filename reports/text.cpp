#include "reports/text.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace petlab::reports {
namespace {

constexpr UChar32 kReplacement = 0xFFFD;

template <typename Each>
void each_character(std::string_view text, Each each) {
  const char* bytes = text.data();
  const auto length = static_cast<std::int32_t>(text.size());
  std::int32_t at = 0;
  while (at < length) {
    UChar32 character = 0;
    U8_NEXT(bytes, at, length, character);
    each(character < 0 ? kReplacement : character);
  }
}

int width_of(UChar32 character) {
  switch (u_charType(character)) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_FORMAT_CHAR:
      return 0;
    default:
      break;
  }
  const int width = u_getIntPropertyValue(character, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

// Inserts thousands separators into the leading digits of `text`.
std::string with_commas(const std::string& text) {
  const std::size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string grouped;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) grouped += ',';
    grouped += text[i];
  }
  return grouped + text.substr(whole);
}

std::string unsigned_text(double magnitude, std::optional<int> digits) {
  if (!std::isfinite(magnitude)) return fmt::format("{}", magnitude);
  if (digits) return with_commas(fmt::format("{:.{}f}", magnitude, *digits));
  if (magnitude == std::floor(magnitude) && magnitude < 1e15) {
    return with_commas(fmt::format("{:.0f}", magnitude));
  }
  return with_commas(fmt::format("{:.6g}", magnitude));
}

bool is_zero(const std::string& text) { return text.find_first_not_of("0.") == std::string::npos; }

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  each_character(text, [&](UChar32 character) { width += width_of(character); });
  return width;
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines = {""};
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word.empty()) continue;
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (display_width(lines.back()) + 1 + display_width(word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string number_text(double number, std::optional<int> digits) {
  const std::string text = unsigned_text(std::fabs(number), digits);
  return number < 0 && !is_zero(text) ? "−" + text : text;
}

std::string difference_text(double difference, std::optional<int> digits) {
  const std::string text = unsigned_text(std::fabs(difference), digits);
  if (is_zero(text)) return "±" + text;
  return (difference < 0 ? "−" : "+") + text;
}

std::string exact_text(double number) { return fmt::format("{}", number); }

std::string inert_cell(const std::string& text) {
  if (text.empty() || std::string_view("=+-@\t\r").find(text.front()) == std::string_view::npos) {
    return text;
  }
  const char* const first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  double number = 0;
  const auto [stopped, error] = std::from_chars(first, end, number);
  if (error == std::errc() && stopped == end && std::isfinite(number)) return text;
  return "'" + text;
}

}  // namespace petlab::reports
