#include "reports/figure.h"

#include <nlohmann/json.hpp>

#include "reports/render.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/vega.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

const char kFigure[] = R"(where: {split: test}
figure:
  title: T
  x: {value: module_bottleneck, log: true}
  y: {where: {name: accuracy}, digits: 1}
  series: [{key: a, where: {variant: a}, published: {table: t, rows: "a bn=", x: bn, y: acc}}]
  horizontal: [{key: full, name: full fine-tuning, where: {variant: full}}]
)";

Published paper() {
  return Published(R"({"v": 1, "source": "Paper", "tables": {"t": {"title": "Main",
    "columns": ["bn", "acc"], "rows": {"a bn=16": [16, 81.0], "a bn=4": [4, 71.0], "b bn=4":
    [4, 1.0]}}}, "errata": [{"table": "t", "rows": ["a bn=16"], "columns": ["acc"], "says": "slip"}]})");
}

// Bottlenecks 4 and 16 with two seeds each, and full fine-tuning with 0.5.
DataMaker sizes() {
  DataMaker make;
  for (const std::int64_t seed : {1, 2}) {
    const double more = 0.02 * static_cast<double>(seed);
    for (const std::int64_t size : {16, 4}) {
      const std::size_t trial = make.trial("a", seed, "x", {{"module_bottleneck", size}});
      make.score(trial, "accuracy", 0.6 + 0.01 * static_cast<double>(size) + more);
    }
    make.score(make.trial("full", seed, "x"), "accuracy", 0.5);
  }
  return make;
}

Figure figure_of(const std::string& text, const Dataset& data, const Published& published) {
  return std::get<Figure>(make_report(definition(text), data, published).sections.at(0));
}

TEST_CASE("Trials of a series with the same x are one point over their seeds", "[reports]") {
  const Figure figure = figure_of(kFigure, sizes().data, paper());
  REQUIRE(figure.series.size() == 1);
  const FigureSeries& a = figure.series[0];
  REQUIRE(a.points.size() == 2);
  CHECK(a.points[0].x == 4);
  CHECK(*a.points[0].cell.measured.mean == Approx(67));
  CHECK(*a.points[0].cell.measured.deviation == Approx(std::sqrt(2.0)));
  CHECK(a.points[0].cell.measured.n() == 2);
  CHECK(a.points[1].x == 16);
  CHECK(error_bar(a.points[1].cell.measured, Spread::deviation)->low ==
        Approx(79 - std::sqrt(2.0)));
  CHECK(error_bar(a.points[1].cell.measured, Spread::standard_error)->high == Approx(80));
  CHECK_FALSE(error_bar(a.points[1].cell.measured, Spread::none));
  REQUIRE(a.published.size() == 2);
  CHECK(a.published[0].x == 4);
  CHECK(a.published[1].y == 81);
  CHECK(a.published[1].erratum == "slip");
  REQUIRE(figure.horizontal.size() == 1);
  CHECK(*figure.horizontal[0].cell.measured.mean == 50);
}

TEST_CASE("With steps as x each report of a metric is a point", "[reports]") {
  DataMaker make;
  for (const std::int64_t seed : {1, 2}) {
    const std::size_t trial = make.trial("a", seed, "x");
    for (const std::int64_t step : {20, 10}) {
      make.score(trial, "accuracy", 0.01 * static_cast<double>(step + seed), "validation", step);
    }
    make.score(trial, "accuracy", 0.9, "test", 20);
  }
  const Figure figure = figure_of(
      "where: {split: validation}\nfigure: {x: {value: step}, y: {where: {name: accuracy}}, "
      "series: "
      "[{each: variant}]}\n",
      make.data, {});
  REQUIRE(figure.series.size() == 1);
  CHECK(figure.series[0].name == "a");
  REQUIRE(figure.series[0].points.size() == 2);
  CHECK(figure.series[0].points[0].x == 10);
  CHECK(*figure.series[0].points[0].cell.measured.mean == Approx(11.5));
  CHECK(figure.series[0].points[1].x == 20);
}

TEST_CASE("A measured x has one point for each configuration, not for each trial", "[reports]") {
  DataMaker make = sizes();
  for (Trial& trial : make.data.trials) {
    trial.fields["train_seconds"] = static_cast<double>(10 * trial.seed);
  }
  const Figure figure = figure_of(
      "where: {split: test}\nfigure: {x: {value: train_seconds}, y: {where: {name: accuracy}}, "
      "series: [{key: a, where: {variant: a, module_bottleneck: 4}}]}\n",
      make.data, {});
  REQUIRE(figure.series[0].points.size() == 1);
  CHECK(figure.series[0].points[0].x == 15);
  CHECK(figure.series[0].points[0].cell.measured.n() == 2);
}

TEST_CASE("Points without a place on an axis are omitted with a note", "[reports]") {
  DataMaker make = sizes();
  make.score(make.trial("a", 1, "x", {{"module_bottleneck", std::int64_t{0}}}), "accuracy", 0.1);
  make.score(make.trial("a", 1, "x"), "accuracy", 0.1);
  const Figure figure = figure_of(kFigure, make.data, paper());
  CHECK(figure.series[0].points.size() == 2);
  CHECK(figure.notes ==
        std::vector<std::string>{"1 of 6 trials of a have no module_bottleneck",
                                 "points at 0 or less have no place on an axis with logarithms"});
}

TEST_CASE("A specification contains the data, and texts in it are only data", "[reports]") {
  DataMaker make = sizes();
  for (Trial& trial : make.data.trials) {
    if (trial.variant == "a")
      trial.fields["variant"] = trial.variant = "{\"signal\": \"alert(1)\"}";
  }
  const Figure figure = figure_of(
      "where: {split: test}\nfigure: {title: \"<b>\\x1b[31m\", x: {value: module_bottleneck}, y: "
      "{where: {name: accuracy}}, series: [{each: variant}]}\n",
      make.data, {});
  const auto json = nlohmann::json::parse(to_vega_lite(figure));
  CHECK(json["title"]["text"] == "<b>�[31m");
  const auto& values = json["data"]["values"];
  REQUIRE(values.size() == 2);
  CHECK(values[0]["series"] == "{\"signal\": \"alert(1)\"}");
  CHECK(values[0]["x"] == 4);
  CHECK(values[0]["low"].get<double>() == Approx(67 - std::sqrt(2.0)));
  CHECK_FALSE(json.dump().find("\"signal\":") != std::string::npos);
  CHECK_FALSE(json.dump().find("\"expr\":") != std::string::npos);
  CHECK_FALSE(json.dump().find("\"url\":") != std::string::npos);
}

TEST_CASE("Formats without figures show a figure's points as a table", "[reports]") {
  const Report report = make_report(definition(kFigure), sizes().data, paper());
  CHECK(to_csv(report) ==
        "group,row,accuracy,accuracy sd,accuracy n,published\r\n"
        "a,module_bottleneck 4,67,1.4142135623730951,2,71\r\n"
        "a,module_bottleneck 16,79,1.4142135623730951,2,81\r\n"
        ",full fine-tuning,50,0,2,\r\n");
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["sections"][0]["kind"] == "figure");
  CHECK(json["sections"][0]["specification"]["data"]["values"].size() == 5);
  const std::string html = to_html(report);
  CHECK(html.find("the figure is not drawn here: none of PETLAB_HOME, XDG_DATA_HOME and HOME is "
                  "set") != std::string::npos);
  const std::string latex = to_latex(report);
  CHECK(latex.find("\\addplot[petlabA,mark=*") != std::string::npos);
  CHECK(latex.find("(4,67) +- (0,1.414") != std::string::npos);
}

TEST_CASE("A report can show only measured or published numbers, or their difference",
          "[reports]") {
  const Report report = make_report(definition(R"(where: {split: test}
table:
  published: t
  rows: [{key: a, where: {module_bottleneck: 4}, published: a bn=4}]
  columns: [{key: acc, where: {name: accuracy}}]
)"),
                                    sizes().data, paper());
  CHECK(to_csv(shown(report, Show::measured)) ==
        "row,acc,acc sd,acc n\r\na,67,1.4142135623730951,2\r\n");
  CHECK(to_csv(shown(report, Show::published)) == "row,acc\r\na,71\r\n");
  CHECK(to_terminal(shown(report, Show::difference), {}).find("a  −4.00") != std::string::npos);
}

TEST_CASE("Cells are compared with a named row seed by seed, with Holm's correction over the table",
          "[reports]") {
  DataMaker make;
  const double base[] = {0.70, 0.72, 0.71};
  const double better[] = {0.80, 0.83, 0.815};
  const double noisy[] = {0.60, 0.90, 0.75};
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    make.score(make.trial("base", seed, "x"), "accuracy", base[seed]);
    make.score(make.trial("better", seed, "x"), "accuracy", better[seed]);
    make.score(make.trial("noisy", seed, "x"), "accuracy", noisy[seed]);
  }
  // Two seeds are too few for a comparison, and an undefined score makes it undefined.
  for (std::int64_t seed = 0; seed < 2; ++seed) {
    make.score(make.trial("twice", seed, "x"), "accuracy", base[seed] + 0.2);
  }
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    const std::size_t trial = make.trial("undefined", seed, "x");
    make.score(trial, "accuracy",
               seed == 4 ? std::nullopt : std::optional(0.9 + 0.01 * static_cast<double>(seed)));
  }
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    make.score(make.trial("base", seed, "y"), "accuracy", base[seed]);
    make.score(make.trial("better", seed, "y"), "accuracy", noisy[seed]);
  }
  const testing::MadeTable table = testing::table_of(
      definition("where: {split: test}\ntable:\n  against: base\n  rows: [{each: variant}]\n"
                 "  columns: [{key: x, where: {task: x, name: accuracy}},\n"
                 "            {key: y, where: {task: y, name: accuracy}}]\n"),
      make.data, {});
  CHECK(table.against == "base");
  CHECK_FALSE(table.cells[0][0].standing.comparison);
  REQUIRE(table.cells[1][0].standing.comparison);
  // From scipy.stats.ttest_rel.
  CHECK(*table.cells[1][0].standing.comparison->p == Approx(0.000755001995138391));
  CHECK(table.cells[1][0].standing.comparison->pairs == 3);
  // The table has three tests, one of them in the other column. The smallest p is multiplied by 3.
  CHECK(*table.cells[1][0].standing.comparison->adjusted_p == Approx(3 * 0.000755001995138391));
  CHECK(*table.cells[2][0].standing.comparison->p == Approx(0.6697108704620915));
  CHECK(*table.cells[2][0].standing.comparison->adjusted_p == 1);
  CHECK(table.cells[1][0].standing.differs());
  CHECK_FALSE(table.cells[2][0].standing.differs());
  CHECK_FALSE(table.cells[3][0].standing.comparison);
  CHECK_FALSE(table.cells[4][0].standing.comparison);
}

}  // namespace
}  // namespace petlab::reports
