#include "tests/metrics/naive_tokenizers.h"

#include <functional>

#include "metrics/unicode.h"

namespace petlab::testing {
namespace {

using namespace petlab::metrics;

using Text = std::u32string;
using Test = std::function<bool(char32_t)>;

Text decode(std::string_view bytes) {
  Text text;
  const char* p = bytes.data();
  while (p < bytes.data() + bytes.size()) text += next_code_point(p);
  return text;
}

void append(char32_t c, std::string& bytes) {
  const auto put = [&bytes](char32_t byte) { bytes += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::vector<std::string> tokens_of(const Text& text) {
  std::vector<std::string> tokens(1);
  for (const char32_t c : text) {
    if (!is_white_space(c)) {
      append(c, tokens.back());
    } else if (!tokens.back().empty()) {
      tokens.emplace_back();
    }
  }
  if (tokens.back().empty()) tokens.pop_back();
  return tokens;
}

Text replaced(const Text& text, const Text& what, const Text& with) {
  Text out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, what.size(), what) == 0) {
      out += with;
      i += what.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Replaces s/(test)/ \1 /.
Text around(const Text& text, const Test& test) {
  Text out;
  for (const char32_t c : text) {
    if (test(c)) {
      out += U' ';
      out += c;
      out += U' ';
    } else {
      out += c;
    }
  }
  return out;
}

enum class Gap { before, after };

// Replaces s/(first)(second)/\1 \2 / or s/(first)(second)/ \1 \2/.
Text between(const Text& text, const Test& first, const Test& second, Gap gap) {
  Text out;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      if (gap == Gap::before) out += U' ';
      out += text[i];
      out += U' ';
      out += text[i + 1];
      if (gap == Gap::after) out += U' ';
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

Text trimmed(Text text, bool left) {
  while (!text.empty() && is_white_space(text.back())) text.pop_back();
  while (left && !text.empty() && is_white_space(text.front())) text.erase(0, 1);
  return text;
}

Text entities(Text text) {
  text = replaced(text, U"&quot;", U"\"");
  text = replaced(text, U"&amp;", U"&");
  text = replaced(text, U"&lt;", U"<");
  return replaced(text, U"&gt;", U">");
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool no_digit(char32_t c) { return !is_digit(c); }
bool is_point(char32_t c) { return c == U'.' || c == U','; }
bool is_dash(char32_t c) { return c == U'-'; }
bool is_western_punctuation(char32_t c) {
  return (c >= 0x20 && c <= 0x26) || (c >= 0x28 && c <= 0x2B) || c == 0x2F ||
         (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

Text points_and_dashes(Text text) {
  text = between(text, no_digit, is_point, Gap::after);
  text = between(text, is_point, no_digit, Gap::before);
  return between(text, is_digit, is_dash, Gap::after);
}

}  // namespace

std::vector<std::string> naive_13a(std::string_view bytes) {
  Text text = trimmed(decode(bytes), false);
  text = replaced(text, U"<skipped>", U"");
  text = replaced(text, U"-\n", U"");
  text = replaced(text, U"\n", U" ");
  text = U" " + entities(text) + U" ";
  return tokens_of(points_and_dashes(around(text, is_western_punctuation)));
}

std::vector<std::string> naive_intl(std::string_view bytes) {
  const auto is = [](CodePointClass wanted) {
    return [wanted](char32_t c) { return code_point_class(c) == wanted; };
  };
  const auto is_not = [](CodePointClass other) {
    return [other](char32_t c) { return code_point_class(c) != other; };
  };
  Text text = trimmed(decode(bytes), false);
  text = between(text, is_not(kNumber), is(kPunctuation), Gap::after);
  text = between(text, is(kPunctuation), is_not(kNumber), Gap::before);
  return tokens_of(around(text, is(kSymbol)));
}

std::vector<std::string> naive_zh(std::string_view bytes) {
  const auto chinese = [](char32_t c) {
    constexpr char32_t kRanges[][2] = {
        {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31EF},
        {0x3200, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9},
        {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
    for (const auto& range : kRanges) {
      if (c >= range[0] && c <= range[1]) return true;
    }
    return false;
  };
  const Text text = around(trimmed(decode(bytes), true), chinese);
  return tokens_of(points_and_dashes(around(text, is_western_punctuation)));
}

std::vector<std::string> naive_tercom(std::string_view bytes, bool lowercase, bool asian) {
  std::string lower(trim_right(bytes));
  if (lowercase) lower_case(std::string(lower), lower);
  Text text = decode(lower);
  text = replaced(text, U"\n-", U"");
  text = replaced(text, U"\n", U" ");
  text = around(U" " + entities(text) + U" ", is_western_punctuation);
  text = points_and_dashes(replaced(text, U"'s ", U" 's "));
  if (asian) {
    text = around(text, [](char32_t c) {
      constexpr char32_t kRanges[][2] = {
          {0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x31C0, 0x31EF}, {0x2E80, 0x2EFF}, {0x3300, 0x33FF},
          {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}, {0x3200, 0x3F22}, {0x3001, 0x3002}, {0x3008, 0x3011},
          {0x3014, 0x301F}, {0xFF61, 0xFF65}, {0x30FB, 0x30FB}, {0xFF01, 0xFF02}, {0xFF08, 0xFF09},
          {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1B}, {0xFF1F, 0xFF1F}};
      for (const auto& range : kRanges) {
        if (c >= range[0] && c <= range[1]) return true;
      }
      return false;
    });
  }
  return tokens_of(text);
}

}  // namespace petlab::testing
