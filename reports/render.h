#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/table.h"

namespace petlab::reports {

/// How a table is shown on a terminal.
struct TerminalOptions {
  bool colour = false;
  int width = 0;  // columns; wider tables are printed in blocks; 0: no limit
};

/// Aligned for a fixed-width font, by the display width of its characters.
std::string to_terminal(const Table& table, const TerminalOptions& options);
/// A GitHub-flavoured Markdown table, with title and legend.
std::string to_markdown(const Table& table);
/// RFC 4180: a line a row; value, deviation, n and published value of a column side by side, all
/// digits. Missing: empty.
std::string to_csv(const Table& table);
/// RFC 4180: a line a cell with everything that is known of it.
std::string to_long_csv(const Table& table);
/// One JSON object (docs/reports.md), two spaces of indentation.
std::string to_json(const Table& table);
/// A page without external resources: sortable, light and dark, details of each cell on hover or
/// focus.
std::string to_html(const Table& table);

/// A row of the table of formats; each is one file.
struct Format {
  std::string_view name;
  std::string_view extension;  // of the file that --out writes; empty: only printed
  std::string_view help;
  /// Terminal options concern `terminal` only.
  std::string (*render)(const Table& table, const TerminalOptions& options);
};

/// terminal, markdown, csv, csv-long, html, json.
std::span<const Format> formats();
/// The row of that name, or nullptr.
const Format* find_format(std::string_view name);

}  // namespace petlab::reports
