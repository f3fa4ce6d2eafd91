// The number of statements that a page needs, by the number of trials.
#include "reports/builtin.h"
#include "reports/losses.h"
#include "reports/report.h"
#include "tests/reports/make_database.h"
#include "tests/results/counted_statements.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

std::filesystem::path database_of(const testing::TempDir& folder, std::size_t trials) {
  std::vector<testing::MadeTrial> all;
  for (std::size_t i = 0; i < trials; ++i) {
    testing::MadeTrial trial;
    trial.id = "t" + std::to_string(i);
    trial.variant = i % 2 == 0 ? "a" : "b";
    trial.seed = static_cast<std::int64_t>(i);
    trial.task = i % 3 == 0 ? "cola" : "rte";
    trial.scores = {{"accuracy", 0.5}, {"f1", 0.25}};
    trial.examples = {{trial.task, {{"train", static_cast<std::int64_t>(i)}, {"test", 7}}}};
    if (i % 5 == 4) trial.scores.erase("f1");  // requires a search of all its metrics
    all.push_back(std::move(trial));
  }
  const std::filesystem::path file = folder.path() / (std::to_string(trials) + ".db");
  testing::make_database(file, "s", all);
  return file;
}

std::int64_t statements_of_page(const std::filesystem::path& file, bool every_step) {
  return testing::statements_in([&] {
    const Definition definition = builtin_report("sweep");
    Dataset data = testing::loaded(file, {"s"}, definition.where, every_step);
    add_losses(file, {"s"}, data);
    std::vector<TrialRecord> records =
        trial_records(make_report(definition, data, published_numbers()), data);
    add_curves(records, file);
    CHECK(records.size() == data.trials.size());
  });
}

// The additional statement is prepared once and finds a trial's values by key.
TEST_CASE("A page needs one more statement for each trial, for its values", "[reports]") {
  const testing::TempDir folder;
  const auto few = database_of(folder, 10);
  const auto many = database_of(folder, 300);
  for (const bool every_step : {false, true}) {
    const std::int64_t statements = statements_of_page(few, every_step);
    CHECK(statements > 5);
    CHECK(statements_of_page(many, every_step) == statements + 300 - 10);
  }
}

TEST_CASE("Numbers of examples need the same statements, for any number of trials", "[reports]") {
  const testing::TempDir folder;
  std::vector<Definition> definitions = {builtin_report("table7")};
  const auto statements = [&](const std::filesystem::path& file, bool examples) {
    Wanted wanted = wanted_by(definitions);
    CHECK(wanted.examples);
    wanted.examples = examples;
    return testing::statements_in(
        [&] { load_dataset(results::Reader(file), {"s"}, wanted, testing::assume_alive); });
  };
  const auto few = database_of(folder, 10);
  const auto many = database_of(folder, 300);
  CHECK(statements(many, true) - statements(many, false) ==
        statements(few, true) - statements(few, false));
  CHECK(statements(many, true) <= statements(many, false) + 4);  // in a separate transaction
}

}  // namespace
}  // namespace petlab::reports
