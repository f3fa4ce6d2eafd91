#include "cli/output/answer_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ostream>

#include "reports/text.h"

namespace petlab::cli {
namespace {

struct AnswerFormat {
  const char* name;
  std::unique_ptr<RowPrinter> (*make)(std::ostream& out, std::size_t keys);
};
template <auto make>
std::unique_ptr<RowPrinter> without_keys(std::ostream& out, std::size_t) {
  return make(out);
}
constexpr AnswerFormat kAnswerFormats[] = {{"table", terminal_table_printer},
                                           {"markdown", without_keys<markdown_printer>},
                                           {"csv", without_keys<csv_printer>},
                                           {"json", without_keys<json_printer>},
                                           {"jsonl", without_keys<json_lines_printer>}};

}  // namespace

std::unique_ptr<RowPrinter> AnswerOutput::printer(std::ostream& out, std::size_t keys) const {
  return std::find_if(std::begin(kAnswerFormats), std::end(kAnswerFormats),
                      [&](const AnswerFormat& row) { return row.name == format; })
      ->make(out, keys);
}

std::vector<results::Value> AnswerOutput::shown(std::vector<results::Value> row) const {
  if (!for_people()) return row;
  for (results::Value& value : row) {
    if (std::holds_alternative<std::monostate>(value)) value = std::string("—");
  }
  return row;
}

void AnswerOutput::print(std::ostream& out, const std::vector<std::string>& columns,
                         const std::vector<std::vector<results::Value>>& rows,
                         std::size_t keys) const {
  const std::unique_ptr<RowPrinter> made = printer(out, keys);
  made->columns(columns);
  for (const std::vector<results::Value>& row : rows) {
    if (!made->row(shown(row))) break;
    if (!out) return;  // nobody reads on; main() says so
  }
  made->end();
}

void add_format_option(CLI::App& app, std::string& format, const std::vector<std::string>& names) {
  CLI::Option* const option = app.add_option("--format", format, "how to print it")
                                  ->check(CLI::IsMember(names))
                                  ->capture_default_str();
  app.add_flag_callback(
         "--json", [&format] { format = "json"; }, "short for --format json")
      ->excludes(option);
}

void add_format_option(CLI::App& app, AnswerOutput& output) {
  std::vector<std::string> names;
  for (const AnswerFormat& row : kAnswerFormats) names.emplace_back(row.name);
  add_format_option(app, output.format, names);
}

std::string short_number(double number, std::optional<double> beside) {
  const double size = std::fabs(beside.value_or(number));
  if (number != 0 && size != 0 && size < 0.001) {
    return fmt::format("{}{:.2e}", number < 0 ? "−" : "", std::fabs(number));
  }
  return reports::number_text(number, size < 1      ? 4
                                      : size < 10   ? 3
                                      : size < 100  ? 2
                                      : size < 1000 ? 1
                                                    : 0);
}

void print_notes(std::ostream& err, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    err << "petlab: note: " << reports::printable(note) << "\n";
  }
}

}  // namespace petlab::cli
