#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "reports/report.h"

namespace petlab::reports {

/// Options for rendering a report.
struct RenderOptions {
  bool colour = false;  // terminal
  int width = 0;  // terminal width in columns; wider tables are split into blocks; 0: no limit
  std::filesystem::path home;  // PETLAB_HOME, for the Python that draws figures; empty: unknown
  bool live = false;           // HTML: the page is served by petlab serve and receives updates
};

/// Aligned for a fixed-width font by display width. Figures become tables of their points, as in
/// all formats without figures.
std::string to_terminal(const Report& report, const RenderOptions& options);
/// GitHub-flavoured Markdown with title and legend.
std::string to_markdown(const Report& report);
/// RFC 4180, one line per row, with value, deviation, n and published value of each column in full
/// precision. Missing values are empty. Sections are separated by an empty line.
std::string to_csv(const Report& report);
/// RFC 4180, one line per cell with all its data.
std::string to_long_csv(const Report& report);
/// One JSON object (docs/reference/report-definitions.md), indented by two spaces.
std::string to_json(const Report& report);
/// A page without external resources: sortable, light and dark, with cell details on hover or
/// focus. Figures are drawn by a script (page_script() in reports/vega.h); without it, their points
/// are shown as tables.
std::string to_html(const Report& report, const RenderOptions& options = {});
/// The part of such a page that depends on the data: everything except head, styles and scripts.
std::string changing_part(const std::string& page);
/// A complete document for pdflatex: booktabs tables with notes, figures by pgfplots.
std::string to_latex(const Report& report);

/// A row of the table of formats. Each format has its own source file.
struct Format {
  std::string_view name;
  std::string_view extension;  // extension of files from --out; empty: only printed
  std::string_view help;
  bool of_figures = false;  // writes one file per figure, none for reports without figures
  /// For figure formats, the report contains a single figure.
  std::string (*render)(const Report& report, const RenderOptions& options);
};

/// terminal, markdown, csv, csv-long, html, json, latex, vega, svg, pdf, png.
std::span<const Format> formats();
/// The row with that name, or nullptr.
const Format* find_format(std::string_view name);

}  // namespace petlab::reports
