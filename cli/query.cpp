#include "cli/query.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/database_option.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

using results::QueryResult;
using results::Value;

/// The same in every format, so that a number can be copied from any.
std::string text_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return reports::exact_text(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "NULL";
}

bool is_number(const Value& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

std::string csv_text(const std::string& text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

nlohmann::ordered_json json_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

struct Format {
  const char* name;
  void (*print)(std::ostream&, const QueryResult&);
};
constexpr Format kFormats[] = {{"table", print_table}, {"csv", print_csv}, {"json", print_json}};

struct Options {
  std::string sql;
  std::filesystem::path database;
  std::string format = "table";
};

}  // namespace

void print_table(std::ostream& out, const QueryResult& result) {
  if (result.columns.empty()) return;
  const std::size_t columns = result.columns.size();
  std::vector<std::vector<std::string>> cells;
  std::vector<int> widths;
  std::vector<bool> numeric(columns, !result.rows.empty());
  for (const std::string& column : result.columns) {
    widths.push_back(reports::display_width(reports::printable(column)));
  }
  for (const auto& row : result.rows) {
    auto& line = cells.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) {
      line.push_back(reports::printable(text_of(row[i])));
      widths[i] = std::max(widths[i], reports::display_width(line.back()));
      const bool null = std::holds_alternative<std::monostate>(row[i]);
      numeric[i] = numeric[i] && (null || is_number(row[i]));
    }
  }
  const auto print = [&](const std::vector<std::string>& line) {
    std::string text;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string space(static_cast<std::size_t>(widths[i] - reports::display_width(line[i])),
                              ' ');
      if (i > 0) text += "  ";
      text += numeric[i] ? space + line[i] : line[i] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  };
  std::vector<std::string> head;
  std::vector<std::string> rule;
  for (std::size_t i = 0; i < columns; ++i) {
    head.push_back(reports::printable(result.columns[i]));
    std::string dashes;
    for (int k = 0; k < widths[i]; ++k) dashes += "─";
    rule.push_back(dashes);
  }
  print(head);
  print(rule);
  for (const auto& line : cells) print(line);
}

void print_csv(std::ostream& out, const QueryResult& result) {
  const auto print = [&](const std::vector<std::string>& line) {
    for (std::size_t i = 0; i < line.size(); ++i) out << (i > 0 ? "," : "") << line[i];
    out << '\n';
  };
  std::vector<std::string> line;
  for (const std::string& column : result.columns) line.push_back(csv_text(column));
  print(line);
  for (const auto& row : result.rows) {
    line.clear();
    for (const Value& value : row) {
      const bool null = std::holds_alternative<std::monostate>(value);
      line.push_back(null ? "" : csv_text(text_of(value)));
    }
    print(line);
  }
}

void print_json(std::ostream& out, const QueryResult& result) {
  std::vector<std::string> keys;
  std::map<std::string, int> times;
  for (const std::string& column : result.columns) {
    const int before = times[column]++;
    keys.push_back(before == 0 ? column : column + ":" + std::to_string(before));
  }
  out << '[';
  for (std::size_t r = 0; r < result.rows.size(); ++r) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < keys.size(); ++i) object[keys[i]] = json_of(result.rows[r][i]);
    out << (r > 0 ? ",\n " : "")
        << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  out << "]\n";
}

std::function<int()> make_query(CLI::App& app, Streams streams) {
  auto options = std::make_shared<Options>();
  app.add_option("SQL", options->sql,
                 "one SELECT; the views results and sweep_results have a row per trial and metric "
                 "(docs/database.md). - reads it from standard input")
      ->required();
  app.add_option("--db", options->database, "the database (default: petlab.db in this folder)");
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  app.add_option("--format", options->format, "how to print the rows")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  return [options, streams] {
    if (options->sql == "-") {
      options->sql.assign(std::istreambuf_iterator<char>(streams.in), {});
    }
    const QueryResult result = results::query(database_to_read(options->database), options->sql);
    for (const Format& format : kFormats) {
      if (options->format == format.name) format.print(streams.out, result);
    }
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
