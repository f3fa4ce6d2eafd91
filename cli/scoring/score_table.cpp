#include "cli/scoring/score_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "reports/latex_text.h"

namespace petlab::cli {
namespace {

// Padding around each header.
constexpr std::size_t kAroundHeader = 2;

/// Number of characters. All characters of metrics and numbers are one column wide.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> lines_of(const std::string& cell) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = cell.find('\n'); end != std::string::npos; end = cell.find('\n', begin)) {
    lines.push_back(cell.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.push_back(cell.substr(begin));
  return lines;
}

std::vector<std::size_t> widths_of(const ScoreTable& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.header.size(); ++c) {
    widths.push_back(width_of(table.header[c]) + kAroundHeader);
    for (const std::vector<std::string>& row : table.cells) {
      for (const std::string& line : lines_of(row[c])) {
        widths[c] = std::max(widths[c], width_of(line));
      }
    }
  }
  return widths;
}

std::string placed(const std::string& text, std::size_t width, bool first) {
  const std::size_t room = width - width_of(text);
  const std::size_t left = first ? room : room / 2;
  return std::string(left, ' ') + text + std::string(room - left, ' ');
}

std::string ruler(const std::vector<std::size_t>& widths, std::string_view begin,
                  std::string_view line, std::string_view middle, std::string_view end) {
  std::string result(begin);
  for (std::size_t c = 0; c < widths.size(); ++c) {
    if (c > 0) result += middle;
    for (std::size_t i = 0; i < widths[c] + 2; ++i) result += line;
  }
  return result + std::string(end) + "\n";
}

std::string grid_row(const std::vector<std::string>& cells,
                     const std::vector<std::size_t>& widths) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 0;
  for (const std::string& cell : cells) {
    columns.push_back(lines_of(cell));
    height = std::max(height, columns.back().size());
  }
  std::string result;
  for (std::size_t l = 0; l < height; ++l) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string text = l < columns[c].size() ? columns[c][l] : std::string();
      result += fmt::format("│ {} ", placed(text, widths[c], c == 0));
    }
    result += "│\n";
  }
  return result;
}

}  // namespace

std::string grid_of(const ScoreTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string result = ruler(widths, "╒", "═", "╤", "╕") + grid_row(table.header, widths) +
                       ruler(widths, "╞", "═", "╪", "╡");
  for (std::size_t r = 0; r < table.cells.size(); ++r) {
    if (r > 0) result += ruler(widths, "├", "─", "┼", "┤");
    result += grid_row(table.cells[r], widths);
  }
  return result + ruler(widths, "╘", "═", "╧", "╛");
}

std::string booktabs_of(const ScoreTable& table) {
  // Widths of the texts before they are escaped for LaTeX.
  const std::vector<std::size_t> widths = widths_of(table);
  std::string result =
      "\\begin{tabular}{r" + std::string(widths.size() - 1, 'c') + "}\n\\toprule\n";
  const auto add_row = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) result += "&";
      result += fmt::format(" {} ", reports::escaped_latex(placed(cells[c], widths[c], c == 0)));
    }
    result += "\\\\\n";
  };
  add_row(table.header);
  result += "\\midrule\n";
  for (const std::vector<std::string>& row : table.cells) add_row(row);
  return result + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace petlab::cli
