#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace petlab::fuzz {

/// Cuts, removes, repeats or inserts a few bytes, sometimes a piece of the format.
inline std::string tampered(std::string text, std::mt19937& random,
                            const std::vector<std::string>& pieces) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), 1 + below(30)));
        break;
      default:
        text.insert(at, pieces[below(pieces.size())]);
    }
  }
  return text;
}

/// Requires that a property of tests/fuzz holds for a text and for `times` tampered copies of it.
inline void try_tampered(const std::string& text, int times, const std::vector<std::string>& pieces,
                         void (*property)(std::string_view)) {
  std::mt19937 random(11);
  property(text);
  for (int i = 0; i < times; ++i) {
    const std::string input = tampered(text, random, pieces);
    INFO(input);
    REQUIRE_NOTHROW(property(input));
  }
}

inline const std::vector<std::string> kYaml = {
    "*a", "&a ", "{",  "}",    "[",    "]",    "? ", "---\n", "- ",    ": ",  "'",
    "\"", "|",   "\t", "\n  ", "!!x ", "\xff", "#",  "~",     "1e999", "0x1", "<<: "};
inline const std::vector<std::string> kJson = {"{",    "}",   "[",    "]",   "\"", "\\u12", "\\",
                                               "null", "1e9", "-0.0", "NaN", ":",  ",",     "\xff"};

}  // namespace petlab::fuzz
