#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "reports/builtin.h"
#include "reports/cell_text.h"
#include "reports/html.h"
#include "reports/render.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

constexpr std::uintmax_t kLargestScript = std::uintmax_t{16} << 20;

// Vega and what draws figures with it; empty where the set-up has not put it in place.
std::string figure_script(const std::filesystem::path& home) {
  const std::filesystem::path file = figure_tools(home) / "vega.js";
  std::error_code error;
  if (home.empty() || !std::filesystem::exists(file, error)) return {};
  try {
    return base::read_file(file, kLargestScript);
  } catch (const base::Error&) {
    return {};
  }
}

std::string section_html(const Table& table) {
  std::vector<std::string> lines;
  if (!table.published_title.empty()) {
    lines.emplace_back("second line of a cell: published value (difference)");
  }
  for (std::string& line : legend(table)) lines.push_back(std::move(line));
  const std::string title =
      table.title.empty() ? std::string() : "<h2>" + escaped_html(table.title) + "</h2>\n";
  return "<section>\n" + title + "<div class=\"scroll\">\n" + html_table(table) +
         "</div>\n<ul class=\"legend\">\n" + list_items(lines) + "</ul>\n</section>\n";
}

// The points are there as a table too: for a screen reader, and where there is no script.
std::string section_html(const Figure& figure, std::size_t number, bool drawn) {
  Table points = table_of_points(figure);
  points.title.clear();
  std::string html = fmt::format("<section>\n<figure aria-label=\"{}\">\n",
                                 escaped_html(figure.title.empty() ? "figure" : figure.title));
  if (drawn) {
    html += fmt::format(
        "<div class=\"plot\" data-figure=\"specification-{0}\"></div>\n"
        "<script type=\"application/json\" id=\"specification-{0}\">{1}</script>\n",
        number, json_in_html(to_vega_lite(figure)));
  } else {
    html += "<p class=\"about\">" + escaped_html(figure.title) + "</p>\n";
  }
  html += fmt::format(
      "<details{}>\n<summary>the points as a table</summary>\n"
      "<div class=\"scroll\">\n{}</div>\n</details>\n",
      drawn ? "" : " open", html_table(points));
  std::vector<std::string> lines = legend(figure);
  if (drawn) lines.emplace_back("a click on the legend shows one series, a double click all");
  if (!drawn) {
    lines.emplace_back(
        "the figure is not drawn here: scripts/setup.sh puts in place what draws it");
  }
  for (std::string& line : legend(points)) lines.push_back(std::move(line));
  return html + "</figure>\n<ul class=\"legend\">\n" + list_items(lines) + "</ul>\n</section>\n";
}

}  // namespace

std::string to_html(const Report& report, const RenderOptions& options) {
  bool figures = false;
  for (const Section& section : report.sections) {
    figures = figures || std::holds_alternative<Figure>(section);
  }
  const std::string vega = figures ? figure_script(options.home) : std::string();
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
      escaped_html(report.name), builtin_file("page.css"));
  if (!report.about.empty()) html += "<p class=\"about\">" + escaped_html(report.about) + "</p>\n";
  std::vector<std::string> progress;
  for (const SweepProgress& sweep : report.progress) progress.push_back(progress_text(sweep));
  html += "<ul class=\"progress\">\n" + list_items(progress) + "</ul>\n";
  for (std::size_t i = 0; i < report.sections.size(); ++i) {
    if (const auto* figure = std::get_if<Figure>(&report.sections[i])) {
      html += section_html(*figure, i, !vega.empty());
    } else {
      html += section_html(std::get<Table>(report.sections[i]));
    }
  }
  if (!report.notes.empty()) {
    html += "<ul class=\"legend\">\n" + list_items(report.notes) + "</ul>\n";
  }
  if (!report.builds.empty()) {
    html += "<details>\n<summary>Where these numbers come from</summary>\n<ul class=\"legend\">\n" +
            list_items(report.builds) + "</ul>\n</details>\n";
  }
  html += "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n";
  html += fmt::format("<script>\n{}</script>\n", builtin_file("page.js"));
  if (!vega.empty()) {
    html += fmt::format("<!--\n{}-->\n<script>\n{}\n</script>\n<script>\n{}</script>\n",
                        builtin_file("vega-notice.txt"), vega, builtin_file("figures.js"));
  }
  return html + "</body>\n</html>\n";
}

}  // namespace petlab::reports
