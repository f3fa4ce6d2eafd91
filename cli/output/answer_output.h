#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/row_printers.h"

namespace CLI {
class App;
}

namespace petlab::cli {

/// How the commands that answer questions print: table, markdown, csv, json, jsonl.
struct AnswerOutput {
  std::string format = "table";
  /// For people: what a mean, its deviation and n are stand in one cell.
  bool for_people() const { return format == "table" || format == "markdown"; }
  /// The printer of that format.
  std::unique_ptr<RowPrinter> printer(std::ostream& out, std::size_t keys = 1) const;
  /// A row as that printer shows it: for people, NULL (a field that means nothing for the trial, a
  /// missing score) is a dash.
  std::vector<results::Value> shown(std::vector<results::Value> row) const;
  /// Prints all rows; the first `keys` columns say what a row is of.
  void print(std::ostream& out, const std::vector<std::string>& columns,
             const std::vector<std::vector<results::Value>>& rows, std::size_t keys = 1) const;
};

/// --format.
void add_format_option(CLI::App& app, AnswerOutput& output);

/// For people: four decimals below 100, fewer above, as many as it has where it is tiny.
std::string short_number(double number);

/// Prints each as `petlab: note: …` on the stream of errors, which a table does not need.
void print_notes(std::ostream& err, const std::vector<std::string>& notes);

}  // namespace petlab::cli
