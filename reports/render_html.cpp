#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/script_digest.h"
#include "reports/builtin.h"
#include "reports/cell_text.h"
#include "reports/html.h"
#include "reports/render.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

constexpr std::string_view kLiveHead =
    "<p id=\"live-state\" role=\"status\">connecting</p>\n<div id=\"live-now\"></div>\n";

// Figures with more points take too long to draw, so the page shows only their table.
constexpr std::size_t kMostDrawn = 20'000;
constexpr std::size_t kMostListed = 2'000;

std::string legend_html(const std::vector<std::string>& lines) {
  return lines.empty() ? std::string() : "<ul class=\"legend\">\n" + list_items(lines) + "</ul>\n";
}

std::vector<std::string> legend_of(const Table& table) {
  std::vector<std::string> lines = legend(table);
  for (std::string& line : Errata(table).lines()) lines.push_back(std::move(line));
  return lines;
}

// A section's heading, and its label if it has no title.
std::string heading(const std::string& title) {
  return title.empty() ? std::string() : "<h2>" + escaped_html(title) + "</h2>\n";
}
const std::string& label_of(const std::string& title, const Report& report) {
  return title.empty() ? report.name : title;
}

std::string section_html(const Table& table, const Report& report, const std::string& id,
                         const PageScript&) {
  std::vector<std::string> lines;
  if (!table.published_title.empty()) {
    lines.emplace_back("second line of a cell: published value (difference)");
  }
  for (std::string& line : legend_of(table)) lines.push_back(std::move(line));
  return heading(table.title) + "<div class=\"scroll\">\n" +
         html_table(table, id, label_of(table.title, report)) + "</div>\n" + legend_html(lines);
}

// The place where a script draws a section's specification.
std::string plot_html(const std::string& id, const std::string& specification) {
  return fmt::format(
      "<div class=\"plot\" data-figure=\"{0}/specification\"></div>\n"
      "<script type=\"application/json\" id=\"{0}/specification\">{1}</script>\n",
      escaped_html(id), json_in_html(specification));
}

std::string not_drawn(const PageScript& script) {
  return "the figure is not drawn here: " + script.missing;
}

// Figures are shown as tables too, for screen readers and for browsers without scripts.
std::string folded_html(Table table, const std::string& id, const std::string& name,
                        const std::string& label, bool open) {
  table.title.clear();
  return fmt::format(
      "<details{}>\n<summary>the {} as a table</summary>\n"
      "<div class=\"scroll\">\n{}</div>\n{}</details>\n",
      open ? " open" : "", name, html_table(table, id, label + ", " + name),
      legend_html(legend_of(table)));
}

std::string section_html(const Figure& figure, const Report& report, const std::string& id,
                         const PageScript& script) {
  const bool drawn = !script.text.empty();
  const std::string& label = label_of(figure.title, report);
  std::string html =
      heading(figure.title) + fmt::format("<figure aria-label=\"{}\">\n", escaped_html(label));
  std::vector<std::string> lines;
  if (drawn) {
    html += plot_html(id, to_vega_lite(thinned(figure, kMostDrawn)));
    lines.emplace_back(
        "a click on a name in the legend shows its curve alone, with Shift several, a double click "
        "all");
  } else {
    lines.push_back(not_drawn(script));
  }
  const Figure listed = thinned(figure, kMostListed);
  const std::size_t points = measured_points(figure);
  if (measured_points(listed) < points) {
    lines.push_back(fmt::format(
        "of {} points {} are drawn and {} listed: of equal stretches of each curve the lowest and "
        "the highest; all are in the other formats",
        points, drawn ? measured_points(thinned(figure, kMostDrawn)) : 0, measured_points(listed)));
  }
  html += folded_html(table_of_points(listed), id, "points", label, !drawn);
  for (std::string& line : legend(figure)) lines.push_back(std::move(line));
  for (std::string& line : errata_of(figure)) lines.push_back(std::move(line));
  return html + "</figure>\n" + legend_html(lines);
}

std::string section_html(const Ranks& ranks, const Report& report, const std::string& id,
                         const PageScript& script) {
  const bool drawn = ranks.has_ranks() && !script.text.empty();
  const std::string& label = label_of(ranks.title, report);
  std::string html =
      heading(ranks.title) + fmt::format("<figure aria-label=\"{}\">\n", escaped_html(label));
  std::vector<std::string> lines;
  if (drawn) html += plot_html(id, to_vega_lite(ranks));
  if (!drawn && ranks.has_ranks()) lines.push_back(not_drawn(script));
  for (std::string& line : caption(ranks)) lines.push_back(std::move(line));
  html += folded_html(table_of_ranks(ranks), id, "ranks", label, !drawn);
  for (std::string& line : legend(ranks)) lines.push_back(std::move(line));
  return html + "</figure>\n" + legend_html(lines);
}

std::string contents_html(const Report& report) {
  if (report.sections.size() < 3) return {};
  std::string html = "<nav aria-label=\"Contents\">\n<ul>\n";
  for (const Section& section : report.sections) {
    const std::string id = escaped_html(section_id(report.name, section));
    html += fmt::format("<li><a href=\"#{0}\">{0}</a></li>\n", id);
  }
  return html + "</ul>\n</nav>\n";
}

bool has_curves(const Report& report) {
  return std::any_of(report.trials.begin(), report.trials.end(),
                     [](const TrialRecord& trial) { return !trial.curves.empty(); });
}

// Filled by the page's script.
std::string curves_html(const Report& report) {
  const auto with = std::count_if(report.trials.begin(), report.trials.end(),
                                  [](const TrialRecord& trial) { return !trial.curves.empty(); });
  return "<section id=\"learning-curves\">\n<h2>Learning curves</h2>\n" +
         legend_html({fmt::format("{} of the {} trials on this page have some here; a cell's own "
                                  "are shown with its trials",
                                  with, report.trials.size())}) +
         "</section>\n";
}

bool has_figures(const Report& report) {
  return std::any_of(report.sections.begin(), report.sections.end(), is_drawn);
}

// Script elements, and a content security policy that allows exactly these by their digests.
class Scripts {
 public:
  void add(std::string text) {
    policy_ += " '" + base::script_digest(text) + "'";
    elements_ += "<script>" + std::move(text) + "</script>\n";
  }
  const std::string& policy() const { return policy_; }
  const std::string& elements() const { return elements_; }

 private:
  std::string policy_;
  std::string elements_;
};

Scripts scripts_of(const std::string& vega, bool live) {
  Scripts scripts;
  if (!vega.empty()) {
    scripts.add("/*\n" + std::string(builtin_file("vega-notice.txt")) + "*/\n" + vega);
  }
  std::string script = "\n";
  for (const char* part : {"page.js", "tables.js", "cells.js", "figures.js", "trials.js"}) {
    script += builtin_file(part);
  }
  // Must run before the scripts that change the page, because it compares with the page as sent.
  if (live) script += builtin_file("live.js");
  script += builtin_file("start.js");
  scripts.add(std::move(script));
  return scripts;
}

}  // namespace

std::string to_html(const Report& report, const RenderOptions& options) {
  // A live page may receive figures and curves later, when its scripts cannot change any more.
  const bool wants_vega = options.live || has_figures(report) || has_curves(report);
  const PageScript vega = wants_vega ? page_script(options.home) : PageScript();
  const Scripts scripts = scripts_of(vega.text, options.live);
  // The policy allows inline styles because Vega's tooltip has one and bars have lengths. The empty
  // icon keeps browsers from requesting one.
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {3}img-src "
      "data:; "
      "style-src 'unsafe-inline'; script-src{2}; base-uri 'none'; form-action 'none'\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}{4}</style>\n</head>\n<body>\n{5}<main>\n<h1>{0}</h1>\n",
      escaped_html(report.name), builtin_file("page.css"), scripts.policy(),
      options.live ? "connect-src 'self'; " : "", options.live ? builtin_file("live.css") : "",
      options.live ? kLiveHead : "");
  if (!report.about.empty()) html += "<p class=\"about\">" + escaped_html(report.about) + "</p>\n";
  html += html_progress(report.progress) + contents_html(report);
  for (const Section& section : report.sections) {
    const std::string id = section_id(report.name, section);
    html += fmt::format("<section id=\"{}\">\n", escaped_html(id));
    html +=
        std::visit([&](const auto& part) { return section_html(part, report, id, vega); }, section);
    html += "</section>\n";
  }
  if (!vega.text.empty() && (options.live || has_curves(report))) html += curves_html(report);
  html += legend_html(report.notes);
  if (!report.builds.empty()) {
    html += "<details>\n<summary>Where these numbers come from</summary>\n" +
            legend_html(report.builds) + "</details>\n";
  }
  html += "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n";
  html += fmt::format("<script type=\"application/json\" id=\"trials\">{}</script>\n",
                      json_in_html(trials_json(report.trials)));
  return html + scripts.elements() + "</body>\n</html>\n";
}

std::string changing_part(const std::string& page) {
  // Texts are escaped, so these matches are the elements themselves; data scripts have a type.
  const std::size_t begin = page.find("<main>");
  const std::size_t end = page.find("<script>", begin);
  return page.substr(begin, end - begin);
}

}  // namespace petlab::reports
