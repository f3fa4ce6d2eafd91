#include "reports/render.h"

#include <array>

namespace petlab::reports {

std::span<const Format> formats() {
  static constexpr std::array<Format, 6> table = {{
      {"terminal", "", "aligned text", to_terminal},
      {"markdown", ".md", "Markdown table",
       [](const Table& t, const TerminalOptions&) { return to_markdown(t); }},
      {"csv", ".csv", "a line a row, for spreadsheets",
       [](const Table& t, const TerminalOptions&) { return to_csv(t); }},
      {"csv-long", ".long.csv", "a line a cell, every statistic",
       [](const Table& t, const TerminalOptions&) { return to_long_csv(t); }},
      {"html", ".html", "self-contained page",
       [](const Table& t, const TerminalOptions&) { return to_html(t); }},
      {"json", ".json", "everything, for programs",
       [](const Table& t, const TerminalOptions&) { return to_json(t); }},
  }};
  return table;
}

const Format* find_format(std::string_view name) {
  for (const Format& format : formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace petlab::reports
