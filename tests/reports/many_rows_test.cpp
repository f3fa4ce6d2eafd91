// Tables with very many rows, for which quadratic time would exceed the tests' time limit.
#include "base/file_problems.h"
#include "reports/report.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

TEST_CASE("A table with a row for each of many steps is fast", "[reports]") {
  constexpr std::int64_t kSteps = 200'000;
  DataMaker make;
  const std::size_t first = make.trial("a", 1, "x");
  const std::size_t second = make.trial("a", 2, "x");
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    make.score(first, "loss", 1.0 / static_cast<double>(step), "train", step);
    if (step % 2 == 0) make.score(second, "loss", 3.0 / static_cast<double>(step), "train", step);
  }
  const testing::MadeTable table = testing::table_of(definition(R"(table:
  rows: [{each: step, separate: true}]
  columns: [{key: loss, where: {name: loss}, scale: 1}]
)"),
                                                     make.data, {});
  REQUIRE(table.rows.size() == static_cast<std::size_t>(kSteps));
  CHECK(table.rows[3].key == "4");
  CHECK(*table.cells[3][0].measured.mean == Approx(0.5));
  CHECK(table.cells[3][0].measured.n() == 2);
  CHECK(*table.cells[4][0].measured.mean == Approx(0.2));
  CHECK(table.cells[4][0].measured.n() == 1);
  CHECK(table.cells[4][0].measured.partial());
}

TEST_CASE("A table with a row for each step of trials with different steps is fast", "[reports]") {
  constexpr std::int64_t kTrials = 3'000;
  constexpr std::int64_t kStepsEach = 60;
  DataMaker make;
  for (std::int64_t trial = 0; trial < kTrials; ++trial) {
    const std::size_t number = make.trial("a", trial, trial % 2 == 0 ? "x" : "y");
    for (std::int64_t step = 0; step < kStepsEach; ++step) {
      make.score(number, "loss", 0.5, "train", 1 + trial + step * kTrials);
    }
  }
  const testing::MadeTable table = testing::table_of(definition(R"(table:
  rows: [{each: step}]
  columns:
    - {key: loss, where: {name: loss}, scale: 1}
    - {key: none, where: {name: accuracy}}
    - {key: both, where: {name: loss}, average_over: [{task: x}, {task: y}]}
)"),
                                                     make.data, {});
  REQUIRE(table.rows.size() == static_cast<std::size_t>(kTrials * kStepsEach));
  CHECK(*table.cells[7][0].measured.mean == Approx(0.5));
  CHECK(table.cells[7][0].measured.n() == 1);
  CHECK(table.cells[7][0].measured.planned == kTrials);
  CHECK(table.cells[7][1].measured.reason == "no value yet of 3000 trials: 3000 done");
  CHECK(table.cells[7][2].measured.planned == kTrials);
  CHECK(table.cells[7][2].measured.reason ==
        "the average is over 2 values, no seed has more than 1");
}

TEST_CASE("A table with a row for each of many trials is fast", "[reports]") {
  constexpr std::size_t kTrials = 50'000;
  DataMaker make;
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    make.score(
        make.trial("a", static_cast<std::int64_t>(trial), "x", {{"module_rank", std::int64_t{3}}}),
        "accuracy", 0.5);
  }
  const testing::MadeTable table = testing::table_of(definition(R"(table:
  rows: [{each: trial_id}]
  columns:
    - {key: acc, where: {name: accuracy}}
    - {key: size, value: module_rank}
    - {key: all, text: "{trial_id}"}
)"),
                                                     make.data, {});
  const testing::MadeTable whole = testing::table_of(definition(R"(table:
  rows: [{key: all}]
  columns: [{key: ids, text: "{trial_id}"}]
)"),
                                                     make.data, {});
  REQUIRE(table.rows.size() == kTrials);
  CHECK(table.rows.back().key == "t49999");
  CHECK(*table.cells.back()[0].measured.mean == Approx(50));
  CHECK(table.cells.back()[2].measured.text == "t49999");
  CHECK(whole.cells[0][0].measured.text.starts_with("t0, t1, t2, "));
}

TEST_CASE("Steps are selected by number, or by comparison", "[reports]") {
  DataMaker make;
  const std::size_t trial = make.trial("a", 1, "x");
  for (const std::int64_t step : {10, 20, 30}) {
    make.score(trial, "loss", static_cast<double>(step), "train", step);
  }
  const auto shown = [&](const std::string& step) {
    const testing::MadeTable table =
        testing::table_of(definition("table:\n  rows: [{key: all}]\n  columns: [{key: l, "
                                     "scale: 1, where: " +
                                     step + "}]\n"),
                          make.data, {});
    return table.cells[0][0].measured.mean;
  };
  CHECK(shown("{name: loss, step: 20}") == 20.0);
  CHECK(shown("{name: loss, step: '20'}") == 20.0);
  CHECK(shown("{name: loss, step: [20, 25]}") == 20.0);
  CHECK(shown("'name=loss and step=20'") == 20.0);
  CHECK(shown("'name=loss and step>20'") == 30.0);
  CHECK(shown("'name=loss and step<=10'") == 10.0);
  CHECK_FALSE(shown("{name: loss, step: 25}"));
  CHECK_FALSE(shown("{name: loss, step: ~}"));
  CHECK_THROWS_AS(shown("{name: loss, step: 20.5}"), base::FileProblemsError);
}

}  // namespace
}  // namespace petlab::reports
