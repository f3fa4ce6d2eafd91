#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shown.h"

namespace petlab::reports {

/// Columns that a terminal needs for the text: 2 for East Asian wide characters and emoji, 0 for
/// combining marks.
int display_width(std::string_view text);

using base::printable;
using base::printable_lines;

/// For people: `digits` decimals, or as many as it has up to six significant ones; thousands
/// separated by commas, U+2212 for minus, no negative zero.
std::string number_text(double number, std::optional<int> digits);

/// The same with its sign always shown: `+0.12`, `−0.03`, `±0.00`.
std::string difference_text(double difference, std::optional<int> digits);

/// A text as a cell of a spreadsheet, which would compute one that begins like a formula: an
/// apostrophe before it marks it as text. Numbers stay.
std::string inert_cell(const std::string& text);

/// For programs: the shortest text that reads back as the same number.
std::string exact_text(double number);

}  // namespace petlab::reports
