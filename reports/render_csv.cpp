#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reports/cell_text.h"
#include "reports/render.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

// RFC 4180: quotes fields only if necessary, doubles quotes, ends lines with CR LF.
std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

void add_line(std::string& text, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : ",") + quoted(fields[i]);
  text += "\r\n";
}

std::vector<std::string> inert(std::vector<std::string> fields) {
  for (std::string& field : fields) field = inert_cell(field);
  return fields;
}

std::string exact(const std::optional<double>& number) {
  return number ? exact_text(*number) : std::string();
}

std::string value_of(const Measured& measured) {
  switch (measured.kind) {
    case Cell::Kind::missing:
      return "";
    case Cell::Kind::undefined:
      return "undefined";
    case Cell::Kind::text:
      return measured.text;
    case Cell::Kind::number:
      break;
  }
  return exact(measured.mean);
}

std::string published_value(const InPaper& paper) {
  return paper.text ? *paper.text : exact(paper.number);
}

std::string_view kind_name(Cell::Kind kind) {
  switch (kind) {
    case Cell::Kind::missing:
      return "missing";
    case Cell::Kind::undefined:
      return "undefined";
    case Cell::Kind::number:
      return "number";
    case Cell::Kind::text:
      break;
  }
  return "text";
}

std::string yes_no(bool value) { return value ? "true" : "false"; }

std::string csv_of(const Table& table) {
  const auto any = [&](std::size_t column, auto holds) {
    return std::any_of(table.cells.begin(), table.cells.end(),
                       [&](const std::vector<Cell>& row) { return holds(row[column]); });
  };
  const bool groups = std::any_of(table.rows.begin(), table.rows.end(),
                                  [](const Head& head) { return !head.group.empty(); });
  std::vector<std::string> head;
  std::vector<bool> spreads;
  std::vector<bool> printed;
  if (groups) head.emplace_back("group");
  head.emplace_back("row");
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i].name;
    spreads.push_back(
        any(i, [](const Cell& cell) { return cell.measured.spread && cell.measured.n() > 0; }));
    printed.push_back(any(i, [](const Cell& cell) { return cell.published.is_there(); }));
    head.push_back(name);
    if (spreads.back()) head.insert(head.end(), {name + " sd", name + " n"});
    if (printed.back()) head.push_back(name + " published");
  }
  std::string text;
  add_line(text, inert(std::move(head)));
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> fields;
    if (groups) fields.push_back(table.rows[row].group);
    fields.push_back(table.rows[row].name);
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const Cell& cell = table.cells[row][i];
      fields.push_back(value_of(cell.measured));
      if (spreads[i]) {
        fields.push_back(exact(cell.measured.deviation));
        fields.push_back(fmt::format("{}", cell.measured.n()));
      }
      if (printed[i]) fields.push_back(published_value(cell.published));
    }
    add_line(text, inert(std::move(fields)));
  }
  return text;
}

void add_cells(std::string& text, const Table& table, const std::string& name) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cells[row][column];
      std::vector<std::string> seeds;
      std::vector<std::string> values;
      std::vector<std::string> trials;
      for (const Sample& sample : cell.measured.samples) {
        seeds.push_back(fmt::format("{}", sample.seed));
        values.push_back(sample.value ? exact(sample.value) : "undefined");
        trials.push_back(fmt::format("{}", fmt::join(sample.trial_ids, "+")));
      }
      add_line(text, {name,
                      table.rows[row].key,
                      table.rows[row].group,
                      table.rows[row].name,
                      table.columns[column].key,
                      table.columns[column].name,
                      std::string(kind_name(cell.measured.kind)),
                      value_of(cell.measured),
                      exact(cell.measured.deviation),
                      exact(cell.measured.standard_error),
                      fmt::format("{}", cell.measured.n()),
                      fmt::format("{}", cell.measured.planned),
                      fmt::format("{}", cell.measured.undefined()),
                      exact(cell.measured.ci_low),
                      exact(cell.measured.ci_high),
                      exact_text(table.confidence),
                      published_value(cell.published),
                      exact(cell.difference()),
                      yes_no(cell.measured.partial()),
                      yes_no(cell.trials.stale),
                      fmt::format("{}", fmt::join(cell.trials.numerics, " ")),
                      fmt::format("{}", fmt::join(cell.trials.mixed_fields, " ")),
                      fmt::format("{}", fmt::join(cell.trials.mixed_code, "; ")),
                      fmt::format("{}", fmt::join(seeds, " ")),
                      fmt::format("{}", fmt::join(values, " ")),
                      fmt::format("{}", fmt::join(trials, " "))});
    }
  }
}

}  // namespace

std::string to_csv(const Report& report) {
  std::string text;
  for (const Section& section : report.sections) {
    if (!text.empty()) text += "\r\n";
    text += csv_of(table_of(section));
  }
  return text;
}

std::string to_long_csv(const Report& report) {
  std::string text;
  add_line(text, {"report",    "row",    "group",     "row_name",       "column",     "column_name",
                  "kind",      "value",  "deviation", "standard_error", "n",          "planned",
                  "undefined", "ci_low", "ci_high",   "confidence",     "published",  "difference",
                  "partial",   "stale",  "numerics",  "mixed_fields",   "mixed_code", "seeds",
                  "values",    "trials"});
  for (const Section& section : report.sections) {
    const Table table = table_of(section);
    add_cells(text, table, table.key.empty() ? report.name : report.name + "/" + table.key);
  }
  return text;
}

}  // namespace petlab::reports
