#include "metrics/unicode.h"

#include <unicode/ucasemap.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>

namespace petlab::metrics {
namespace {

struct ClassRange {
  char32_t first;
  char32_t last;
  CodePointClass value;
};

constexpr ClassRange kClassRanges[] = {
#include "metrics/unicode_ranges.inc"
};

// A two-level table with pages of 256 code points; equal pages are stored once. A look-up takes two
// loads, the table 50 KB.
class ClassTable {
 public:
  ClassTable() {
    constexpr std::size_t kPages = 0x110000 / 256;
    std::map<std::array<CodePointClass, 256>, std::uint16_t> known;
    std::array<CodePointClass, 256> page;
    const ClassRange* range = std::begin(kClassRanges);
    for (std::size_t p = 0; p < kPages; ++p) {
      for (char32_t i = 0; i < 256; ++i) {
        const char32_t c = static_cast<char32_t>(p) * 256 + i;
        while (range != std::end(kClassRanges) && range->last < c) ++range;
        page[i] = range != std::end(kClassRanges) && range->first <= c ? range->value : kOther;
      }
      const auto [entry, inserted] =
          known.try_emplace(page, static_cast<std::uint16_t>(pages_.size()));
      if (inserted) pages_.push_back(page);
      page_of_[p] = entry->second;
    }
  }
  CodePointClass operator[](char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xFF]; }

 private:
  std::array<std::uint16_t, 0x110000 / 256> page_of_{};
  std::vector<std::array<CodePointClass, 256>> pages_;
};

std::uint64_t load8(const char* p) {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;

// The root locale's case map, which has no language-specific rules. Its calls are thread-safe.
const UCaseMap* case_map() {
  struct Close {
    void operator()(UCaseMap* map) const { ucasemap_close(map); }
  };
  static const std::unique_ptr<UCaseMap, Close> map = [] {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<UCaseMap, Close> opened(ucasemap_open("", 0, &status));
    if (U_FAILURE(status)) throw std::runtime_error("ICU's case mapping data cannot be opened");
    return opened;
  }();
  return map.get();
}

}  // namespace

std::string_view trim_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    const char* p = text.data() + start;
    if (!is_white_space(next_code_point(p))) break;
    text = text.substr(0, start);
  }
  return text;
}

std::string_view trim_left(std::string_view text) {
  while (!text.empty()) {
    const char* p = text.data();
    if (!is_white_space(next_code_point(p))) break;
    text.remove_prefix(static_cast<std::size_t>(p - text.data()));
  }
  return text;
}

std::string_view trim(std::string_view text) { return trim_left(trim_right(text)); }

void split_white_space(std::string_view text, std::vector<std::string_view>& out) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const char* start = p;
  while (p < end) {
    const char* const here = p;
    if (is_white_space(next_code_point(p))) {
      if (start != here) out.emplace_back(start, static_cast<std::size_t>(here - start));
      start = p;
    }
  }
  if (start != end) out.emplace_back(start, static_cast<std::size_t>(end - start));
}

bool has_non_ascii(std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  std::uint64_t bits = 0;
  for (; end - p >= 8; p += 8) bits |= load8(p);
  for (; p < end; ++p) bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(*p) & 0x80);
  return (bits & kHighBits) != 0;
}

void lower_case(std::string_view text, std::string& out) {
  if (!has_non_ascii(text)) {
    out.resize(text.size());
    std::transform(text.begin(), text.end(), out.begin(), [](char c) {
      return static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 'a' - 'A' : 0));
    });
    return;
  }
  if (text.size() > static_cast<std::size_t>(INT32_MAX / 3)) {
    throw std::length_error("a line of more than 700 MB cannot be lower-cased");
  }
  // Lower-case forms have at most one and a half times the bytes of their upper-case forms.
  out.resize(text.size() + text.size() / 2 + 16);
  UErrorCode status = U_ZERO_ERROR;
  const std::int32_t length =
      ucasemap_utf8ToLower(case_map(), out.data(), static_cast<std::int32_t>(out.size()),
                           text.data(), static_cast<std::int32_t>(text.size()), &status);
  if (U_FAILURE(status)) {
    throw std::runtime_error(std::string("ICU cannot lower-case a line: ") + u_errorName(status));
  }
  out.resize(static_cast<std::size_t>(length));
}

CodePointClass code_point_class(char32_t c) {
  static const ClassTable table;
  return table[c];
}

}  // namespace petlab::metrics
