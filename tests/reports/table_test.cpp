#include <algorithm>
#include <ctime>

#include "base/file_problems.h"
#include "reports/axis.h"
#include "reports/cell_text.h"
#include "reports/names.h"
#include "reports/report.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

// Two variants with two seeds, and accuracy on one task, times 100.
const char kSimple[] = R"(where: {split: test}
table:
  cells: {scale: 100, digits: 2}
  rows: [{key: a, where: {variant: a}}, {key: b, where: {variant: b}}]
  columns: [{key: acc, where: {task: x, name: accuracy}}]
)";

TEST_CASE("A cell has the mean, sample deviation, n and t interval over its seeds", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", 0.70);
  make.score(make.trial("a", 2, "x"), "accuracy", 0.80);
  make.score(make.trial("b", 1, "x"), "accuracy", 0.60);
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  REQUIRE(table.cells.size() == 2);
  const Cell& a = table.cells[0][0];
  CHECK(a.measured.kind == Cell::Kind::number);
  CHECK(*a.measured.mean == Approx(75));
  CHECK(*a.measured.deviation == Approx(7.0710678118654755));
  CHECK(*a.measured.standard_error == Approx(5));
  // t(0.975, 1) = 12.706204736432095
  CHECK(*a.measured.ci_low == Approx(75 - 5 * 12.706204736432095));
  CHECK(*a.measured.ci_high == Approx(75 + 5 * 12.706204736432095));
  CHECK(a.measured.n() == 2);
  CHECK(a.measured.planned == 2);
  CHECK_FALSE(a.measured.partial());
  CHECK(a.standing.best);
  CHECK(a.measured.samples[0].trial_ids == std::vector<std::string>{"t0"});
  const Cell& b = table.cells[1][0];
  CHECK(*b.measured.mean == Approx(60));
  CHECK_FALSE(b.measured.deviation);
  CHECK_FALSE(b.measured.ci_low);
  CHECK_FALSE(b.standing.best);
}

TEST_CASE("A table shows deviations, standard errors, intervals or only means", "[reports]") {
  DataMaker make;
  for (const std::int64_t seed : {1, 2, 3}) {
    make.score(make.trial("a", seed, "x"), "accuracy", 0.7 + 0.01 * static_cast<double>(seed));
  }
  const auto shown = [&](const std::string& errors) {
    const testing::MadeTable table = testing::table_of(
        definition("table:\n  errors: " + errors +
                   "\n  rows: [{key: a}]\n  columns: [{key: c, where: {name: accuracy}}]\n"),
        make.data, {});
    return cell_text(table.cells[0][0]).whole() + " | " + legend(table).at(0);
  };
  CHECK(shown("deviation") == "72.00 ± 1.00 (3) | mean ± sample deviation (n seeds)");
  CHECK(shown("standard_error") == "72.00 ± 0.58 (3) | mean ± standard error (n seeds)");
  CHECK(shown("interval") ==
        "72.00 [69.52, 74.48] (3) | mean [95 % interval, Student's t] (n seeds)");
  CHECK(shown("none") == "72.00 (3) | mean (n seeds)");
}

TEST_CASE("Only the last report and the selected split of a metric count", "[reports]") {
  DataMaker make;
  const std::size_t a = make.trial("a", 1, "x");
  make.score(a, "accuracy", 0.1, "test", 20);
  make.score(a, "accuracy", 0.9, "test", 10);  // the best checkpoint, evaluated again at the end
  make.score(a, "accuracy", 0.2, "validation", 30);
  make.score(a, "f1", 0.3, "test", 20);
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  CHECK(*table.cells[0][0].measured.mean == Approx(90));
  CHECK(table.cells[0][0].measured.n() == 1);
}

TEST_CASE("A cell with fewer seeds than planned is partial, and without seeds missing",
          "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", 0.5);
  make.data.trials[make.trial("a", 2, "x")].state = "running";
  make.data.trials[make.trial("b", 1, "x")].state = "failed";
  make.data.trials[make.trial("b", 2, "x")].state = "new";
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  CHECK(table.cells[0][0].measured.partial());
  CHECK(table.cells[0][0].measured.planned == 2);
  const Cell& b = table.cells[1][0];
  CHECK(b.measured.kind == Cell::Kind::missing);
  CHECK_FALSE(b.measured.mean);
  CHECK(b.measured.reason == "no value yet of 2 trials: 1 failed, 1 new");
  REQUIRE(table.progress.size() == 1);
  CHECK(table.progress[0].sweep == "s");
  CHECK(table.progress[0].trials == 4);
}

TEST_CASE("A table says that values are missing because trials stopped early", "[reports]") {
  const auto says_so = [](const std::string& of_a, const std::string& of_b) {
    DataMaker make;
    make.score(make.trial("a", 1, "x"), "accuracy", 0.5);
    make.data.trials[make.trial("a", 2, "x")].state = of_a;
    make.data.trials[make.trial("b", 1, "x")].state = of_b;
    const std::vector<std::string> lines =
        legend(testing::table_of(definition(kSimple), make.data, {}));
    return std::ranges::count(lines, "trials that stopped early have no value") == 1;
  };
  CHECK_FALSE(says_so("running", "failed"));
  CHECK(says_so("stopped early", "failed"));
  CHECK(says_so("running", "stopped early"));
}

TEST_CASE("The best of a column is chosen among cells with all seeds", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", 0.9);
  make.trial("a", 2, "x");
  make.score(make.trial("b", 1, "x"), "accuracy", 0.5);
  make.score(make.trial("c", 1, "x"), "accuracy", 0.6);
  const auto best = [&](const std::string& better) {
    const testing::MadeTable table = testing::table_of(
        definition("table: {rows: [{each: variant}], columns: [{key: acc, better: " + better +
                   ", where: {name: accuracy}}]}\n"),
        make.data, {});
    std::string marks;
    for (const auto& row : table.cells) marks += row[0].standing.best ? '*' : '.';
    return marks;
  };
  CHECK(best("higher") == "..*");
  CHECK(best("lower") == ".*.");
  CHECK(best("none") == "...");
}

TEST_CASE("Without a scale metrics are shown in their usual unit", "[reports]") {
  DataMaker make;
  const std::size_t a = make.trial("a", 1, "x");
  make.score(a, "accuracy", 0.5);
  make.score(a, "bleu", 32.63);
  make.score(a, "ter", 60.0);
  make.score(a, "my_own", 0.25);
  const testing::MadeTable table =
      testing::table_of(definition("table: {rows: [{each: variant}], columns: [{each: "
                                   "name}, {key: avg, average_over: [{name: accuracy}, "
                                   "{name: bleu}]}]}\n"),
                        make.data, {});
  const std::vector<Cell>& row = table.cells[0];
  CHECK(*row[0].measured.mean == Approx(50));
  CHECK(row[0].digits == 2);
  CHECK(*row[1].measured.mean == Approx(32.63));
  CHECK(row[1].better == Better::higher);
  CHECK(*row[2].measured.mean == Approx(0.25));
  CHECK(*row[3].measured.mean == Approx(60));
  CHECK(row[3].better == Better::lower);
  CHECK(*row[4].measured.mean == Approx(41.315));
}

TEST_CASE("The best can be marked by row instead of by column", "[reports]") {
  DataMaker make;
  for (const std::string variant : {"a", "b"}) {
    make.score(make.trial(variant, 1, "x"), "f1", variant == "a" ? 0.9 : 0.1);
    make.score(make.trial(variant, 1, "y"), "f1", 0.5);
  }
  const testing::MadeTable table = testing::table_of(
      definition("table: {best: row, rows: [{each: variant}], columns: [{each: [task, name]}]}\n"),
      make.data, {});
  CHECK(table.cells[0][0].standing.best);
  CHECK_FALSE(table.cells[0][1].standing.best);
  CHECK_FALSE(table.cells[1][0].standing.best);
  CHECK(table.cells[1][1].standing.best);
}

TEST_CASE("A metric that is undefined for a seed makes its cell undefined, never 0", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", std::nullopt);
  make.score(make.trial("a", 2, "x"), "accuracy", 0.5);
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  const Cell& a = table.cells[0][0];
  CHECK(a.measured.kind == Cell::Kind::undefined);
  CHECK(a.measured.undefined() == 1);
  CHECK(a.measured.n() == 2);
  CHECK_FALSE(a.measured.mean);
}

TEST_CASE("Stale trials, mixed numerics and mixed configurations are flagged", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x", {{"training_epochs", std::int64_t{1}}}), "accuracy", 0.5);
  make.score(make.trial("a", 2, "x", {{"training_epochs", std::int64_t{2}}}), "accuracy", 0.5);
  make.data.trials[0].stale = true;
  make.data.trials[1].numerics = R"({"version":"2"})";
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  const Cell& a = table.cells[0][0];
  CHECK(a.trials.stale);
  CHECK(a.trials.numerics.size() == 2);
  CHECK(a.trials.mixed_fields == std::vector<std::string>{"training_epochs"});
}

TEST_CASE("A trial in two sweeps counts once", "[reports]") {
  DataMaker make;
  const std::size_t first = make.trial("a", 1, "x");
  const std::size_t again = make.trial("a", 1, "x");
  make.data.trials[again].id = make.data.trials[first].id;
  make.data.trials[again].sweep = "other";
  make.score(first, "accuracy", 0.5);
  make.score(again, "accuracy", 0.5);
  const testing::MadeTable table = testing::table_of(definition(kSimple), make.data, {});
  CHECK(table.cells[0][0].measured.n() == 1);
  CHECK(table.cells[0][0].measured.planned == 1);
}

TEST_CASE("A cell that selects several values of one trial is an error", "[reports]") {
  DataMaker make;
  const std::size_t a = make.trial("a", 1, "x");
  make.score(a, "accuracy", 0.5);
  make.score(a, "f1", 0.5);
  const Definition vague = definition("table:\n  rows: [{key: a}]\n  columns:\n    - {key: c}\n");
  CHECK_THROWS_WITH(testing::table_of(vague, make.data, {}),
                    "r.yaml:5: the cell selects 2 values of trial t0 (test x accuracy at step 10, "
                    "test x f1 at step 10), must select one: add split, task or name to a where");
}

TEST_CASE("The best value depends on the metric", "[reports]") {
  const auto better = [](std::vector<std::string> metrics) {
    DataMaker make;
    const std::size_t trial = make.trial("a", 1, "x");
    std::string parts;
    for (const std::string& metric : metrics) {
      make.score(trial, metric, 0.5);
      parts += (parts.empty() ? "{task: x, name: " : ", {task: x, name: ") + metric + "}";
    }
    return testing::table_of(
               definition("table: {rows: [{key: a}], columns: [{key: c, average_over: [" + parts +
                          "]}]}\n"),
               make.data, {})
        .cells[0][0]
        .better;
  };
  CHECK(better({"accuracy"}) == Better::higher);
  CHECK(better({"accuracy", "f1"}) == Better::higher);
  CHECK(better({"loss"}) == Better::lower);
  CHECK(better({"accuracy", "loss"}) == Better::none);
  CHECK(better({"perplexity"}) == Better::none);
}

TEST_CASE("All unknown fields of a definition are reported with the nearest known one",
          "[reports]") {
  try {
    definition(R"(where: {splt: test}
table:
  rows:
    - {each: varaint}
  columns:
    - {key: c, where: {modul_kind: adapter}}
    - {key: e, text: "{sed}"}
    - {key: f, where: {bls_percent: 1}}
)");
    FAIL("no problem was found");
  } catch (const base::FileProblemsError& error) {
    CHECK(error.problems() ==
          std::vector<std::string>{
              R"(r.yaml:2: where: unknown field "splt"; did you mean "split"?)",
              R"(r.yaml:5: row.each: unknown field "varaint"; did you mean "variant"?)",
              R"(r.yaml:7: column.where: unknown field "modul_kind"; did you mean "module_kind"?)",
              R"(r.yaml:8: column.text: unknown field "sed"; did you mean "seed"?)",
              "r.yaml:9: column.where has bls_percent, which is computed for cells; no condition "
              "can use it",
          });
  }
}

TEST_CASE("A user field that no trial has is noted", "[reports]") {
  DataMaker make;
  make.trial("a", 1, "x", {{"user.known", "1"}});
  const Definition asks = definition(
      "where: {user.known: '1', user_other: 1}\n"
      "table: {published: t99, rows: [{key: a}], columns: [{key: c}]}\n");
  const CheckedNames names = check_names(asks, make.data, {});
  CHECK(names.problems == std::vector<std::string>{"r.yaml:3: published is 't99', which is no "
                                                   "published table (known: )"});
  CHECK(names.notes == std::vector<std::string>{"no trial here has user.other"});
}

TEST_CASE("An average is computed for each seed with all its parts, and only for those",
          "[reports]") {
  DataMaker make;
  for (const std::int64_t seed : {1, 2}) {
    const double shift = seed == 1 ? 0.0 : 0.1;
    make.score(make.trial("a", seed, "x"), "accuracy", 0.4 + shift);
    make.score(make.trial("a", seed, "y"), "f1", 0.6 + shift);
  }
  make.score(make.trial("a", 3, "x"), "accuracy", 0.9);
  make.trial("a", 3, "y");
  const Definition average = definition(R"(where: {split: test}
table:
  rows: [{key: a}]
  columns:
    - {key: avg, scale: 100, average_over: [{task: x, name: accuracy}, {task: y, name: f1}]}
)");
  const testing::MadeTable table = testing::table_of(average, make.data, {});
  const Cell& cell = table.cells[0][0];
  CHECK(cell.measured.n() == 2);
  CHECK(cell.measured.planned == 3);
  CHECK(cell.measured.samples[0].trial_ids == std::vector<std::string>{"t0", "t1"});
  CHECK(*cell.measured.samples[0].value == Approx(50));
  CHECK(*cell.measured.samples[1].value == Approx(60));
  CHECK(*cell.measured.mean == Approx(55));
  CHECK(cell.trials.mixed_fields.empty());
}

TEST_CASE("An average without a complete seed says how many parts it found", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", 0.4);
  const Definition average = definition(R"(table:
  rows: [{key: a}]
  columns:
    - {key: avg, average_over: [{task: x, name: accuracy}, {task: y, name: f1}]}
)");
  const testing::MadeTable table = testing::table_of(average, make.data, {});
  CHECK(table.cells[0][0].measured.kind == Cell::Kind::missing);
  CHECK(table.cells[0][0].measured.reason ==
        "the average is over 2 values, no seed has more than 1");
}

TEST_CASE("A configuration value is shown once if all trials agree", "[reports]") {
  DataMaker make;
  make.data.trials[make.trial("a", 1, "x", {{"training_learning_rate", 0.5}})].fields["bls_bits"] =
      3200.0;
  make.data.trials[make.trial("a", 2, "x", {{"training_learning_rate", 0.7}})].fields["bls_bits"] =
      3200.0;
  for (Trial& trial : make.data.trials) trial.fields["backbone"] = "tiny";
  const Definition values = definition(R"(backbone_parameters: {tiny: 1000}
table:
  rows: [{key: a}]
  columns:
    - {key: bits, value: bls_bits}
    - {key: percent, value: bls_percent}
    - {key: rate, value: training_learning_rate}
    - {key: backbone, value: backbone}
    - {key: text, text: "{training_learning_rate*100}/{bls_bits|none}/{module_rank|none}"}
)");
  make.data.trials[0].fields["module_rank"] = results::Value();
  const testing::MadeTable table = testing::table_of(values, make.data, {});
  const std::vector<Cell>& row = table.cells[0];
  CHECK(*row[0].measured.mean == 3200);
  CHECK_FALSE(row[0].measured.spread);
  CHECK(*row[1].measured.mean == Approx(10));  // percent: 3200 of 32 · 1000 bits
  CHECK(row[2].measured.spread);
  CHECK(*row[2].measured.mean == Approx(0.6));
  CHECK(row[3].measured.text == "tiny");
  CHECK(row[4].measured.text == "50/3200/none, 70/3200/none");
}

TEST_CASE("%BLS without a module needs no sizes", "[reports]") {
  DataMaker make;
  const std::size_t full = make.trial("full", 1, "x");
  make.data.trials[full].fields["module_kind"] = "full_finetuning";
  make.data.trials[full].tasks = {"x", "y", "z", "w"};
  make.data.trials[make.trial("head", 1, "x")].fields["module_kind"] = "head_only";
  const testing::MadeTable table = testing::table_of(
      definition("table:\n"
                 "  rows: [{key: f, where: {variant: full}}, {key: h, where: {variant: head}}]\n"
                 "  columns: [{key: p, value: bls_percent}]\n"),
      make.data, {});
  CHECK(*table.cells[0][0].measured.mean == 25);  // one backbone for four tasks
  CHECK(*table.cells[1][0].measured.mean == 0);
  CHECK(table.notes.empty());
}

TEST_CASE("%BLS of a module is per task", "[reports]") {
  DataMaker make;
  const std::size_t one = make.trial("one", 1, "x");
  const std::size_t four = make.trial("four", 1, "x");
  make.data.trials[four].tasks = {"x", "y", "z", "w"};
  for (const std::size_t trial : {one, four}) {
    make.data.trials[trial].fields["module_kind"] = "adapter";
    make.data.trials[trial].fields["bls_bits"] = 3200.0;
    make.data.trials[trial].fields["backbone"] = "tiny";
  }
  const testing::MadeTable table = testing::table_of(
      definition("backbone_parameters: {tiny: 1000}\n"
                 "table:\n"
                 "  rows: [{key: o, where: {variant: one}}, {key: f, where: {variant: four}}]\n"
                 "  columns: [{key: p, value: bls_percent}]\n"),
      make.data, {});
  CHECK(*table.cells[0][0].measured.mean == 10);
  CHECK(*table.cells[1][0].measured.mean == 2.5);
}

TEST_CASE("%BLS of an unknown backbone is missing, with a note on what to do", "[reports]") {
  DataMaker make;
  const std::size_t trial = make.trial("a", 1, "x");
  make.data.trials[trial].fields["bls_bits"] = 3200.0;
  make.data.trials[trial].fields["backbone"] = "mine";
  const testing::MadeTable table = testing::table_of(
      definition("table: {rows: [{key: a}], columns: [{key: p, value: bls_percent}]}\n"), make.data,
      {});
  CHECK(table.cells[0][0].measured.kind == Cell::Kind::missing);
  CHECK(table.notes ==
        std::vector<std::string>{"%BLS needs the parameter count of backbone mine: add it to "
                                 "backbone_parameters of the report"});
}

TEST_CASE("Rows and columns from each follow the plan's order, and metrics their names",
          "[reports]") {
  DataMaker make;
  const std::size_t b = make.trial("b", 1, "y");
  const std::size_t a = make.trial("a", 1, "x");
  make.score(a, "z", 0.1);
  make.score(a, "accuracy", 0.1);
  make.score(b, "pearson", 0.1);
  const Definition each = definition(
      "table: {rows: [{each: variant}], columns: [{each: [task, name], name: \"{name} of "
      "{task}\"}]}"
      "\n");
  const testing::MadeTable table = testing::table_of(each, make.data, {});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].name == "b");
  CHECK(table.rows[1].name == "a");
  REQUIRE(table.columns.size() == 3);
  CHECK(table.columns[0].name == "pearson of y");
  CHECK(table.columns[0].key == "y.pearson");
  CHECK(table.columns[1].name == "accuracy of x");
  CHECK(table.columns[2].name == "z of x");
  CHECK(table.cells[0][1].measured.reason == "the sweep has no such trial");

  Dataset reversed = make.data;
  std::reverse(reversed.scores.begin(), reversed.scores.end());
  const testing::MadeTable again = testing::table_of(each, reversed, {});
  for (std::size_t i = 0; i < 3; ++i) CHECK(again.columns[i].name == table.columns[i].name);
}

TEST_CASE("The time for a line for each step is proportional to their number", "[reports]") {
  DataMaker make;
  const std::size_t trial = make.trial("a", 1, "x");
  constexpr std::int64_t kSteps = 60000;
  for (std::int64_t step = kSteps; step > 0; --step) make.score(trial, "loss", 0.5, "train", step);
  Line line;
  line.each = {"step"};
  const std::clock_t start = std::clock();
  const std::vector<AxisLine> lines = expand(std::span(&line, 1), make.data, {trial}, {});
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 3);
  REQUIRE(lines.size() == static_cast<std::size_t>(kSteps));
  CHECK(lines.front().name == "1");
  CHECK(lines.back().name == "60000");
}

TEST_CASE("Trials that differ in more than the seed get separate rows", "[reports]") {
  DataMaker make;
  for (const double rate : {0.1, 0.2}) {
    for (const std::int64_t seed : {1, 2}) {
      make.score(make.trial("a", seed, "x", {{"rate", rate}, {"epochs", std::int64_t{3}}}), "f1",
                 rate);
    }
  }
  // Epochs differ only together with the task, so these two trials are one experiment.
  make.score(make.trial("b", 1, "x", {{"rate", 0.1}, {"epochs", std::int64_t{3}}}), "f1", 0.3);
  make.score(make.trial("b", 1, "y", {{"rate", 0.1}, {"epochs", std::int64_t{9}}}), "f1", 0.3);
  const testing::MadeTable table = testing::table_of(
      definition("table: {rows: [{each: variant, separate: true}], columns: [{each: [task, name]}]}"
                 "\n"),
      make.data, {});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].name == "a (rate 0.1)");
  CHECK(table.rows[1].name == "a (rate 0.2)");
  CHECK(table.rows[2].name == "b");
  CHECK(table.cells[0][0].measured.n() == 2);
  CHECK(table.cells[0][0].trials.mixed_fields.empty());
}

TEST_CASE("Published values are matched by row and column and shown with the difference",
          "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "x"), "accuracy", 0.75);
  const Published published(R"({"v": 1, "source": "The paper", "tables": {"table1": {
    "title": "Main", "columns": ["x.accuracy", "kind"], "rows": {"A": [74.5, "s"]}}},
    "errata": [{"table": "table1", "rows": ["A"], "columns": ["x.accuracy"], "says": "slip"}]})");
  const Definition compared = definition(R"(table:
  published: table1
  cells: {scale: 100}
  rows: [{key: a, published: A}]
  columns:
    - {key: x.accuracy, where: {task: x, name: accuracy}}
    - {key: kind, text: "{variant}"}
    - {key: unprinted, text: "{variant}"}
)");
  const testing::MadeTable table = testing::table_of(compared, make.data, published);
  CHECK(*table.cells[0][0].published.number == 74.5);
  CHECK(*table.cells[0][0].difference() == Approx(0.5));
  CHECK(table.cells[0][0].published.erratum == "slip");
  CHECK(*table.cells[0][1].published.text == "s");
  CHECK_FALSE(table.cells[0][2].published.number);
  CHECK(table.published_title == "The paper, table1: Main");

  const Definition wrong = definition(
      "table:\n  published: table1\n  rows: [{key: a, published: AA}]\n  columns: [{key: b, "
      "published: knd}]\n");
  CHECK(
      check_names(wrong, make.data, published).problems ==
      std::vector<std::string>{"r.yaml:4: published is 'AA', which is no row of table1 (known: A)",
                               "r.yaml:5: published is 'knd', which is no column of table1; did "
                               "you mean kind? (known: x.accuracy, kind)"});
}

TEST_CASE("A cell's content is defined by the row, else by the column, else by the table",
          "[reports]") {
  DataMaker make;
  const std::size_t trial = make.trial("a", 1, "x", {{"module_rank", std::int64_t{8}}});
  make.score(trial, "f1", 0.5);
  const testing::MadeTable table = testing::table_of(definition(R"(table:
  cells: {value: module_rank, scale: 10}
  rows: [{key: a}, {key: t, text: "r{module_rank}"}]
  columns:
    - {key: rank}
    - {key: f1, average_over: [{task: x, name: f1}], scale: 100, digits: 1}
)"),
                                                     make.data, {});
  CHECK(*table.cells[0][0].measured.mean == 80);
  CHECK(*table.cells[0][1].measured.mean == 50);
  CHECK(table.cells[0][1].digits == 1);
  CHECK(table.cells[1][0].measured.text == "r8");
  CHECK(table.cells[1][1].measured.text == "r8");
}

TEST_CASE("A column can be relative to the mean of a row", "[reports]") {
  DataMaker make;
  for (const auto& [task, seconds] : {std::pair("a", 10.0), {"a", 30.0}, {"b", 5.0}}) {
    const std::size_t trial = make.trial("v", static_cast<std::int64_t>(seconds), task);
    make.data.trials[trial].fields["train_seconds"] = seconds;
  }
  const char rows[] =
      "  rows: [{key: a, where: {task: a}}, {key: b, where: {task: b}}, "
      "{key: c, where: {task: c}}]\n  columns:\n";
  const Published published(R"({"v": 1, "source": "Paper", "tables": {"table1": {"title": "T",
    "columns": ["s"], "rows": {"a": [80], "b": [40]}}}, "errata": []})");
  const auto table_relative_to = [&](const std::string& to) {
    return testing::table_of(
        testing::definition(
            "table:\n  published: table1\n" + std::string(rows) +
            "    - {key: r, value: train_seconds, published: s, relative_to: " + to + "}\n"),
        make.data, published);
  };
  const testing::MadeTable to_a = table_relative_to("a");
  CHECK(*to_a.cells[0][0].measured.mean == 1);
  CHECK(*to_a.cells[1][0].measured.mean == 0.25);
  CHECK(*to_a.cells[1][0].published.number == 0.5);
  CHECK(*to_a.cells[1][0].difference() == -0.25);
  CHECK_FALSE(to_a.cells[0][0].measured.deviation);
  CHECK(to_a.cells[2][0].measured.kind == Cell::Kind::missing);
  // Nothing can be relative to a row without a value.
  const testing::MadeTable to_c = table_relative_to("c");
  CHECK(to_c.cells[0][0].measured.reason == "no value of c, to which it would be relative");
  CHECK_FALSE(to_c.cells[0][0].published.number);
  CHECK_THROWS_WITH(
      table_relative_to("z"),
      "r.yaml:6: column.relative_to is 'z', must be the key of a row (known: a, b, c)");
}

}  // namespace
}  // namespace petlab::reports
