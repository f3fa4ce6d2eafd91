#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shown.h"

namespace petlab::reports {

/// Width of a text in terminal columns: 2 for East Asian wide characters and emoji, 0 for combining
/// marks.
int display_width(std::string_view text);

using base::printable;
using base::printable_lines;

/// Wraps the words of a text to lines of at most `width` columns; a longer word is a line.
std::vector<std::string> wrapped(std::string_view text, int width);

/// Formats a number for people: `digits` decimals, or up to six significant digits; thousands
/// separated by commas, U+2212 as minus sign, no negative zero.
std::string number_text(double number, std::optional<int> digits);

/// Like number_text(), with the sign always shown: `+0.12`, `−0.03`, `±0.00`.
std::string difference_text(double difference, std::optional<int> digits);

/// Escapes a text for a spreadsheet cell: an apostrophe before a text that looks like a formula
/// keeps it from being evaluated. Numbers are unchanged.
std::string inert_cell(const std::string& text);

/// Formats a number for programs: the shortest text that reads back as the same number.
std::string exact_text(double number);

}  // namespace petlab::reports
