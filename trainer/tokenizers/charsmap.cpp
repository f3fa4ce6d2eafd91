#include "trainer/tokenizers/charsmap.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "trainer/files/error.h"
#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

/// Longer graphemes are looked up only character by character.
constexpr std::size_t kLongestGrapheme = 5;

// The bit fields of a unit of the double array.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) == 1; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

/// Whether the byte continues a UTF-8 character.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i > 0; --i) {
    number = number << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return number;
}

icu::BreakIterator& grapheme_iterator() {
  thread_local const std::unique_ptr<icu::BreakIterator> iterator = [] {
    UErrorCode failed = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> created(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), failed));
    if (U_FAILURE(failed))
      throw Error(std::string("ICU cannot segment graphemes: ") + u_errorName(failed));
    return created;
  }();
  return *iterator;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\r'; });
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& what) {
  if (bytes.empty()) return;
  const auto refuse = [&](const char* why) {
    throw Error(fmt::format("{} is not a compiled normalisation: {}", what, why));
  };
  if (bytes.size() < 4) refuse("it is shorter than its length field");
  const std::uint32_t size = number_at(bytes, 0);
  if (size > bytes.size() - 4 || size % 4 != 0 || size == 0) {
    refuse("its trie differs from its recorded length");
  }
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(number_at(bytes, at));
  replacements_ = bytes.substr(4 + size);
  if (base::first_invalid_utf8(replacements_)) refuse("its replacements are not UTF-8");
  if (!replacements_.ends_with('\0')) replacements_.push_back('\0');
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  // In a damaged trie, a step may lead outside. Then nothing is found.
  std::uint32_t at = offset_of(units_[0]);
  for (const char c : text) {
    if (c == '\0') return std::nullopt;
    at ^= static_cast<unsigned char>(c);
    if (at >= units_.size()) return std::nullopt;
    const std::uint32_t unit = units_[at];
    if (label_of(unit) != static_cast<unsigned char>(c)) return std::nullopt;
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return std::nullopt;
    const std::uint32_t begin = value_of(units_[at]);
    if (begin >= replacements_.size() || is_inside_character(replacements_[begin])) {
      return std::nullopt;
    }
    return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void Charsmap::append_grapheme(std::string_view grapheme, std::string& normalized) const {
  if (grapheme.size() <= kLongestGrapheme) {
    if (const auto found = find(grapheme)) {
      normalized += *found;
      return;
    }
  }
  for (std::size_t at = 0; at < grapheme.size();) {
    const std::size_t begin = at;
    next_code_point(grapheme, at);
    const std::string_view character = grapheme.substr(begin, at - begin);
    normalized += find(character).value_or(character);
  }
}

std::string Charsmap::normalize(std::string_view text) const {
  if (units_.empty()) return std::string(text);
  std::string normalized;
  normalized.reserve(text.size());
  if (is_plain(text)) {  // each character is a grapheme
    for (std::size_t i = 0; i < text.size(); ++i) append_grapheme(text.substr(i, 1), normalized);
    return normalized;
  }
  UErrorCode failed = U_ZERO_ERROR;
  UText source = UTEXT_INITIALIZER;
  utext_openUTF8(&source, text.data(), static_cast<std::int64_t>(text.size()), &failed);
  icu::BreakIterator& graphemes = grapheme_iterator();
  graphemes.setText(&source, failed);
  if (U_FAILURE(failed)) throw Error(std::string("ICU cannot read a text: ") + u_errorName(failed));
  std::int32_t begin = graphemes.first();
  for (std::int32_t end = graphemes.next(); end != icu::BreakIterator::DONE;
       end = graphemes.next()) {
    append_grapheme(
        text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
        normalized);
    begin = end;
  }
  utext_close(&source);
  return normalized;
}

}  // namespace petlab::trainer
