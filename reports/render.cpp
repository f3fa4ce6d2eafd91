#include "reports/render.h"

#include <array>

#include "reports/vega.h"

namespace petlab::reports {
namespace {

template <std::string (*kRender)(const Report&)>
std::string plainly(const Report& report, const RenderOptions&) {
  return kRender(report);
}

std::string only_specification(const Report& report) {
  return specification_of(report.sections.front());
}

std::string picture_of(const Report& report, const RenderOptions& options, const char* kind) {
  return draw({{only_specification(report), kind}}, options.home).front();
}

}  // namespace

std::span<const Format> formats() {
  static constexpr std::array<Format, 11> table = {{
      {"terminal", "", "aligned text", false, to_terminal},
      {"markdown", ".md", "Markdown table", false, plainly<to_markdown>},
      {"csv", ".csv", "a line a row, for spreadsheets", false, plainly<to_csv>},
      {"csv-long", ".long.csv", "a line a cell, every statistic", false, plainly<to_long_csv>},
      {"html", ".html", "self-contained page", false, to_html},
      {"json", ".json", "everything, for programs", false, plainly<to_json>},
      {"latex", ".tex", "booktabs and pgfplots, for pdflatex", false, plainly<to_latex>},
      {"vega", ".vl.json", "a figure's Vega-Lite specification", true, plainly<only_specification>},
      {"svg", ".svg", "a figure drawn", true,
       [](const Report& r, const RenderOptions& o) { return picture_of(r, o, "svg"); }},
      {"pdf", ".pdf", "a figure drawn", true,
       [](const Report& r, const RenderOptions& o) { return picture_of(r, o, "pdf"); }},
      {"png", ".png", "a figure drawn, two dots a pixel", true,
       [](const Report& r, const RenderOptions& o) { return picture_of(r, o, "png"); }},
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
