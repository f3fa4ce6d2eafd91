// Reports of the numbers of examples for training and scoring.
#include "reports/cell_text.h"
#include "reports/report.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

const char kSizes[] = R"(table:
  cells: {value: examples}
  rows: [{key: a, where: {task: cola}}, {key: b, where: {task: rte}}]
  columns: [{key: train, where: {split: train}}, {key: test, where: {split: test}}]
)";

std::shared_ptr<const results::Examples> sizes(std::int64_t train) {
  return std::make_shared<const results::Examples>(
      results::Examples{{"cola", {{"train", train}, {"test", 1043}}}, {"rte", {{"train", 2490}}}});
}

TEST_CASE("A cell shows its trials' number of examples, as a whole number if they agree",
          "[reports]") {
  DataMaker make;
  for (const std::int64_t seed : {1, 2, 3}) {
    const std::size_t trial = make.trial("a", seed, "cola");
    make.data.trials[trial].tasks = {"cola", "rte"};
    if (seed < 3) make.data.trials[trial].examples = sizes(1234567);
  }
  make.trial("b", 1, "rte");
  const auto cells = [&] { return testing::table_of(definition(kSizes), make.data, {}).cells; };
  auto table = cells();
  CHECK(cell_text(table[0][0]).whole() == "1,234,567");
  CHECK(cell_text(table[0][1]).whole() == "1,043");
  CHECK(table[0][0].measured.samples.size() == 2);
  CHECK_FALSE(table[0][0].measured.partial());
  CHECK(table[0][0].trials.ids->size() == 3);
  CHECK(cell_text(table[1][0]).whole() == "2,490");
  CHECK(table[1][1].measured.kind == Cell::Kind::missing);
  CHECK(table[1][1].measured.reason == "of 4 trials with a result none says on how many examples");

  // Trials with different numbers.
  make.data.trials[1].examples = sizes(1234569);
  table = cells();
  CHECK(cell_text(table[0][0]).whole() == "1,234,568 ± 1 (2/3)");
  CHECK(cell_text(table[0][1]).whole() == "1,043");

  make.data.trials[0].examples = make.data.trials[1].examples = nullptr;
  for (Trial& trial : make.data.trials) trial.state = "new";
  CHECK(cells()[1][0].measured.reason == "no value yet of 4 trials: 4 new");
}

TEST_CASE("A cell of examples must select one task and one split", "[reports]") {
  DataMaker make;
  make.data.trials.at(make.trial("a", 1, "cola")).examples = sizes(8551);
  const auto table = [&](const std::string& where) {
    return testing::table_of(
        definition(
            "table:\n  rows: [{key: a}]\n  columns:\n    - {key: c, value: examples, where: {" +
            where + "}}\n"),
        make.data, {});
  };
  CHECK_THROWS_WITH(table("split: train"),
                    "r.yaml:5: the cell selects numbers of examples of 2 tasks or splits (train "
                    "cola, train rte), must select one of each: add task or split to a where");
  CHECK_THROWS_WITH(table("task: cola"),
                    "r.yaml:5: the cell selects numbers of examples of 2 tasks or splits (test "
                    "cola, train cola), must select one of each: add task or split to a where");
  CHECK(table("task: cola, split: train").cells[0][0].measured.mean == 8551);
}

TEST_CASE("Examples cannot be used as a field of trials", "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "cola"), "accuracy", 0.5);
  const auto report = [&](const std::string& text) {
    return make_report(definition(text), make.data, {});
  };
  CHECK_THROWS_WITH(report("figure:\n  x: {value: examples}\n  y: {where: {name: accuracy}}\n"
                           "  series: [{key: a}]\n"),
                    "r.yaml:3: figure.x.value is 'examples', which trials have of each task and "
                    "split, must be a field of the trials, or step; cells of tables and figure.y "
                    "can show it");
  CHECK_THROWS_WITH(
      report("table:\n  rows: [{key: a}]\n  columns: [{key: c, text: \"{examples}\"}]\n"),
      Catch::Matchers::StartsWith("r.yaml:4: column.text: unknown field \"examples\""));
}

TEST_CASE("A number is compared with a published text rounded to thousands", "[reports]") {
  Cell cell;
  cell.measured.kind = Cell::Kind::number;
  const auto difference = [&](double number, const std::string& published) {
    cell.measured.mean = number;
    cell.published.text = published;
    return difference_text(cell);
  };
  CHECK(difference(8551, "8.6k") == "=");
  CHECK(difference(8551, "8.5k") == "≠");
  CHECK(difference(204045, "204k") == "=");
  CHECK(difference(203499, "204k") == "≠");
  CHECK(difference(521, "0.5k") == "=");
  for (const char* text : {"1 day", "k", "8.6", "8,6k", "8.6.1k", "-1k", "8.6k k", "8k6k", ""}) {
    CHECK(difference(8600, text).empty());
  }
}

}  // namespace
}  // namespace petlab::reports
