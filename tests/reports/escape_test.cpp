#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/render.h"
#include "reports/vega.h"
#include "tests/reports/make_data.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;

// Texts with a special meaning in one of the formats.
const std::vector<std::string> kTexts = {
    "<script>alert(1)</script>",   "\\input{x}",     "=cmd()",     "a|b",
    "\x1b]0;title\x07\x1b[31mred", "datum.a.b('c')", "{{signal}}", "](http://x)"};

// A report with these texts as variants, series, axes and titles, in a table, a figure and ranks.
Report hostile() {
  DataMaker make;
  std::int64_t size = 1;
  for (const std::string& text : kTexts) {
    for (const std::int64_t seed : {1, 2}) {
      make.score(make.trial(text, seed, "x", {{"module_bottleneck", size}}), "accuracy",
                 0.01 * static_cast<double>(seed + size));
    }
    ++size;
  }
  Report report = make_report(
      testing::definition("where: {split: test}\nsections:\n"
                          "  - table: {key: t, rows: [{each: variant}], columns: [{key: v, value: "
                          "variant}, {key: acc, where: {name: accuracy}}]}\n"
                          "  - figure: {key: f, x: {value: module_bottleneck}, y: {where: {name: "
                          "accuracy}}, series: [{each: variant}]}\n"
                          "  - ranks: {key: r, variants: [{each: variant}], tasks: [{key: '=x()', "
                          "name: '=x()', where: {task: x, name: accuracy}}, {key: y, where: "
                          "{task: x, name: accuracy}}]}\n"),
      make.data, {});
  for (const std::string& text : kTexts) {
    report.about += text;
    report.notes.push_back(text);
  }
  auto& figure = std::get<Figure>(report.sections[1]);
  figure.title = figure.x.name = figure.y.name = report.about;
  auto& ranks = std::get<Ranks>(report.sections[2]);
  ranks.title = report.about;
  ranks.notes = kTexts;
  report.trials = trial_records(report, make.data);
  for (TrialRecord& trial : report.trials) {
    AttemptRecord& attempt = trial.attempts.emplace_back();
    attempt.reason = report.about;
    attempt.log = kTexts;
  }
  return report;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("Texts cannot control a terminal, except in formats for programs", "[reports]") {
  for (const Format& format : formats()) {
    if (format.of_figures) continue;
    INFO(format.name);
    const std::string text = format.render(hostile(), {});
    // Formats for programs and spreadsheets have the texts unchanged.
    if (format.name.starts_with("csv") || format.name == "json") continue;
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\x07') == std::string::npos);
  }
}

TEST_CASE("A text cannot add markup to a page", "[reports]") {
  const std::string html = to_html(hostile());
  CHECK(html.find("<script>alert") == std::string::npos);
  // The page's own script and one block of data. There would be two if a figure were drawn.
  CHECK(count_of(html, "</script>") == 2);
}

TEST_CASE("A text cannot add LaTeX commands or Markdown cells", "[reports]") {
  const std::string latex = to_latex(hostile());
  CHECK(latex.find("\\input{") == std::string::npos);
  CHECK(latex.find("\\textbackslash{}input\\{x\\}") != std::string::npos);
  const std::string markdown = to_markdown(hostile());
  CHECK(markdown.find("| a\\|b | a\\|b |") != std::string::npos);
  CHECK(markdown.find("| \\<script\\>alert(1)\\</script\\> |") != std::string::npos);
  CHECK(markdown.find("| \\](http://x) |") != std::string::npos);
}

TEST_CASE("A text cannot become a spreadsheet formula", "[reports]") {
  const std::string csv = to_csv(hostile());
  CHECK(csv.find("\n=cmd()") == std::string::npos);
  CHECK(csv.find(",=cmd()") == std::string::npos);
  CHECK(csv.find("\n'=cmd(),'=cmd(),") != std::string::npos);
}

// Calls `visit` with the path and value of each text in a specification.
void each_text(const nlohmann::json& json, const std::string& path,
               const std::function<void(const std::string&, const std::string&)>& visit) {
  if (json.is_string()) visit(path, json.get<std::string>());
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    each_text(value, path + "/" + (json.is_array() ? "" : key), visit);
  }
}

TEST_CASE("A text cannot become a Vega expression", "[reports]") {
  const Report report = hostile();
  const auto places_in = [&](const Section& section) {
    std::set<std::string> places;
    each_text(nlohmann::json::parse(specification_of(section)), "",
              [&](const std::string& path, const std::string& text) {
                CHECK(path.find("expr") == std::string::npos);
                CHECK(path.find("signal") == std::string::npos);
                CHECK(text.find('\x1b') == std::string::npos);
                for (const std::string& part : kTexts) {
                  if (text.find(part) != std::string::npos) places.insert(path);
                }
              });
    return places;
  };
  // Vega-Lite uses texts in these places literally.
  CHECK(places_in(report.sections[2]) ==
        std::set<std::string>{"/data/values//name", "/data/values//names", "/title/text"});
  CHECK(places_in(report.sections[1]) ==
        std::set<std::string>{"/data/values//series", "/layer//encoding/color/scale/domain/",
                              "/layer//encoding/tooltip//title", "/layer//encoding/x/title",
                              "/layer//encoding/y/title", "/title/text"});
}

}  // namespace
}  // namespace petlab::reports
