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
  /// True for tables that people read: a cell shows mean, deviation and n together.
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

/// `--format` for a command that prints in several formats, `names`, and `--json`, which is short
/// for the one called json. `format` holds the default and outlives the app.
void add_format_option(CLI::App& app, std::string& format, const std::vector<std::string>& names);
/// The same for the formats of AnswerOutput.
void add_format_option(CLI::App& app, AnswerOutput& output);

/// A number for people: four significant digits, but at most four decimals and all digits before
/// the point; below 0.001 with an exponent. `beside` decides the decimals instead, so that a
/// deviation has as many as its mean.
std::string short_number(double number, std::optional<double> beside = {});

/// Prints each as `petlab: note: …` on the stream of errors, which a table does not need.
void print_notes(std::ostream& err, const std::vector<std::string>& notes);

}  // namespace petlab::cli
