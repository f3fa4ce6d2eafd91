#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "reports/report.h"

namespace petlab::reports {

/// How a report is shown.
struct RenderOptions {
  bool colour = false;  // terminal
  int width = 0;  // of the terminal in columns; wider tables are printed in blocks; 0: no limit
  std::filesystem::path home;  // PETLAB_HOME, where figures' tools are; empty: without them
  bool live = false;  // HTML: a page that is served and listens to what changes (petlab serve)
};

/// Aligned for a fixed-width font, by the display width of its characters. A figure is a table of
/// its points, here and wherever a format has no figures.
std::string to_terminal(const Report& report, const RenderOptions& options);
/// GitHub-flavoured Markdown with title and legend.
std::string to_markdown(const Report& report);
/// RFC 4180: a line a row; value, deviation, n and published value of a column side by side, all
/// digits. Missing: empty. Sections are an empty line apart.
std::string to_csv(const Report& report);
/// RFC 4180: a line a cell with everything that is known of it.
std::string to_long_csv(const Report& report);
/// One JSON object (docs/reference/report-definitions.md), two spaces of indentation.
std::string to_json(const Report& report);
/// A page without external resources: sortable, light and dark, details of each cell on hover or
/// focus. Figures are drawn by the script that the set-up puts in place; without it there are their
/// points as tables.
std::string to_html(const Report& report, const RenderOptions& options = {});
/// The part of such a page that other data change: all but its head, styles and scripts.
std::string changing_part(const std::string& page);
/// A whole document for pdflatex: booktabs tables with notes, figures by pgfplots.
std::string to_latex(const Report& report);

/// A row of the table of formats; each is one file.
struct Format {
  std::string_view name;
  std::string_view extension;  // of the file that --out writes; empty: only printed
  std::string_view help;
  bool of_figures = false;  // a file for each figure, none for a report without
  /// A format of figures gets a report of one figure.
  std::string (*render)(const Report& report, const RenderOptions& options);
};

/// terminal, markdown, csv, csv-long, html, json, latex, vega, svg, pdf, png.
std::span<const Format> formats();
/// The row of that name, or nullptr.
const Format* find_format(std::string_view name);

}  // namespace petlab::reports
