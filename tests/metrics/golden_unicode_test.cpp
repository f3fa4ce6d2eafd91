#include <unicode/uchar.h>

#include "base/utf8.h"
#include "metrics/unicode.h"
#include "tests/metrics/golden_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

using namespace petlab::metrics;
using namespace petlab::testing;
using nlohmann::json;

namespace {

std::string utf8(char32_t c) {
  std::string bytes;
  const auto put = [&bytes](char32_t byte) { bytes += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
  return bytes;
}

// True if the code point was added after Unicode 14.0, the version of the golden values, which
// therefore lack its lower case.
bool is_later(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] > 14;
}

// Unpacks a value of the file, which is JSON or a string that contains JSON.
json unpacked(const json& value) {
  return value.is_string() ? json::parse(value.get<std::string>()) : value;
}

std::vector<bool> code_points_of(const json& ranges) {
  std::vector<bool> in(0x110000);
  for (const json& range : unpacked(ranges)) {
    for (std::size_t c = range.at(0); c <= range.at(1); ++c) in[c] = true;
  }
  return in;
}

}  // namespace

TEST_CASE("every code point has the same class, white space and lower case as in sacrebleu",
          "[metrics][golden][wide]") {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::int64_t files = 0;
  for (const auto& file : golden_files(*folder, "unicode", ".json")) {
    const json tables = json::parse(read_file(file));
    const auto punctuation = code_points_of(tables.at("P"));
    const auto symbols = code_points_of(tables.at("S"));
    const auto numbers = code_points_of(tables.at("N"));
    std::vector<bool> space(0x110000);
    const json spaces = unpacked(tables.at("space"));
    for (const json& item : spaces) {
      if (item.is_array()) {
        for (std::size_t c = item.at(0); c <= item.at(1); ++c) space[c] = true;
      } else {
        space[item.get<std::size_t>()] = true;
      }
    }
    std::map<char32_t, std::string> lower;
    for (const json& item : unpacked(tables.at("lower"))) {
      std::string text;
      for (const json& c : item.at(1)) text += utf8(c);
      lower[item.at(0)] = text;
    }
    std::size_t wrong = 0;
    std::string found;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const std::string bytes = utf8(c);
      const CodePointClass wanted = punctuation[c] ? kPunctuation
                                    : symbols[c]   ? kSymbol
                                    : numbers[c]   ? kNumber
                                                   : kOther;
      lower_case(bytes, found);
      const char* p = bytes.data();
      if (code_point_class(c) != wanted || is_white_space(c) != space[c] ||
          (found != (lower.contains(c) ? lower[c] : bytes) && !is_later(c)) ||
          next_code_point(p) != c || p != bytes.data() + bytes.size() ||
          petlab::base::first_invalid_utf8(bytes)) {
        ++wrong;
        UNSCOPED_INFO("U+" << std::hex << static_cast<unsigned>(c));
      }
    }
    CHECK(wrong == 0);
    ++files;
  }
  golden_ran("metrics/unicode", files);
}
