#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "results/query.h"

namespace petlab::cli {

/// How `petlab query` prints rows, one after the other as they come.
class RowPrinter {
 public:
  virtual ~RowPrinter() = default;
  virtual void columns(const std::vector<std::string>& names) = 0;
  /// False where no further row is wanted.
  virtual bool row(const std::vector<results::Value>& values) = 0;
  /// After the last row, where the statement came to its end or no more rows were wanted.
  virtual void end() = 0;
};

/// For people: columns aligned by display width, numbers to the right, NULL spelled out; what a
/// terminal would take as a command is replaced. It holds its rows until end(). A table wider than
/// `width` comes in blocks, each with the first `keys` columns; 0: no limit.
std::unique_ptr<RowPrinter> table_printer(std::ostream& out, std::size_t keys, int width);
/// The same, for the terminal that `out` goes to, if any.
std::unique_ptr<RowPrinter> terminal_table_printer(std::ostream& out, std::size_t keys);
/// RFC 4180 with line feeds: NULL is nothing, empty text is "".
std::unique_ptr<RowPrinter> csv_printer(std::ostream& out);
/// The same for a file that a spreadsheet may open: texts that it would compute are marked as texts
/// (reports::inert_cell).
std::unique_ptr<RowPrinter> spreadsheet_printer(std::ostream& out);
/// A table of GitHub's Markdown: numbers to the right, NULL is an empty cell. It holds its rows
/// until end().
std::unique_ptr<RowPrinter> markdown_printer(std::ostream& out);
/// An array of objects, a line each. A column's name that comes again gets a number: name:1.
std::unique_ptr<RowPrinter> json_printer(std::ostream& out);
/// The same objects, a line each, without the array.
std::unique_ptr<RowPrinter> json_lines_printer(std::ostream& out);

}  // namespace petlab::cli
