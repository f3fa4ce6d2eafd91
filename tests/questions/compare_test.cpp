#include "questions/compare.h"

#include <fmt/format.h>

#include "questions/best.h"
#include "questions/sparkline.h"
#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

CompareResult compared(const SmallDatabase& database, const std::string& a, const std::string& b) {
  CompareRequest request;
  request.baseline = parse_side(a);
  request.others = {parse_side(b)};
  return compare(results::ScoreReader(database.file()), request);
}

std::string refused_comparison(const SmallDatabase& database, const std::string& a,
                               const std::string& b) {
  try {
    compared(database, a, b);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was wrong";
}

}  // namespace

TEST_CASE("Sides are paired over seeds, and the test is Student's", "[questions]") {
  SmallDatabase database;
  const double a[] = {0.50, 0.52, 0.49, 0.53, 0.51};
  const double b[] = {0.55, 0.56, 0.53, 0.59, 0.54};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    database.scored("a", SmallDatabase::config("cola", seed, 8), a[seed]);
    database.scored("b", SmallDatabase::config("cola", seed, 64), b[seed]);
  }
  database.scored("b", SmallDatabase::config("cola", 99, 64), 0.9);  // without a partner
  const CompareResult result = compared(database, "a", "variant=b");
  REQUIRE(result.comparisons.size() == 1);
  const Comparison& comparison = result.comparisons.front();
  CHECK(comparison.pairs == 5);
  CHECK(comparison.unpaired == 1);
  CHECK(*comparison.baseline_mean == Approx(0.51));
  // R: t.test(b, a, paired = TRUE): t = 8.6271, p = 0.0009943, mean 0.044, interval 0.02984 0.05816
  CHECK(*comparison.effect == Approx(0.044));
  CHECK(comparison.interval->low == Approx(0.02984).epsilon(1e-3));
  CHECK(comparison.interval->high == Approx(0.05816).epsilon(1e-3));
  CHECK(*comparison.p == Approx(0.000994).epsilon(1e-2));
  CHECK(comparison.adjusted_p == comparison.p);
  CHECK(comparison.verdict == "variant=b is better");
  CHECK(result.notes ==
        std::vector<std::string>{
            "with fewer than 6 pairs a difference rests on the differences being "
            "normally distributed: ranks alone could not show it",
            "some scores have no partner of equal task and seed, and are left out"});
}

TEST_CASE("Fields that both sides vary form pairs, others must be chosen", "[questions]") {
  SmallDatabase database;
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const std::int64_t bottleneck : {8, 16}) {
      for (const char* task : {"cola", "rte"}) {
        sweeps::TrialConfig config = SmallDatabase::config(task, seed, bottleneck);
        database.scored("a", config, 0.5 + 0.01 * static_cast<double>(seed));
        config.module.share = true;
        database.scored("b", config, 0.5 + 0.011 * static_cast<double>(seed));
      }
    }
  }
  const CompareResult result = compared(database, "a", "b");
  REQUIRE(result.comparisons.size() == 3);
  CHECK(result.comparisons[0].task == "cola");
  CHECK(result.comparisons[0].pairs == 6);
  CHECK(result.comparisons[2].task.empty());
  CHECK(result.comparisons[2].pairs == 6);
  CHECK(result.notes.front() == "p is adjusted for 3 comparisons (Holm)");
  CHECK(result.notes.at(1) == "all tasks: the mean over tasks of each seed that has all of them");
  CHECK(result.notes.at(2) ==
        "pairs are not of seeds alone, but of each module_bottleneck too: they may depend on each "
        "other");
  CHECK(*result.comparisons[0].adjusted_p >= *result.comparisons[0].p);
  CHECK(refused_comparison(database, "variant=a and module_bottleneck=8", "b") ==
        "b: several trials have seed 1, expected one for each pair: they differ in "
        "module_bottleneck; choose with --where");
}

TEST_CASE("If n is too small, there is no verdict", "[questions]") {
  SmallDatabase database;
  for (const std::uint64_t seed : {1, 2}) {
    database.scored("a", SmallDatabase::config("cola", seed, 8), 0.5);
    database.scored("b", SmallDatabase::config("cola", seed, 16),
                    0.6 + 0.1 * static_cast<double>(seed));
    database.scored("c", SmallDatabase::config("cola", seed + 10, 32), 0.6);
  }
  const CompareResult few = compared(database, "a", "b");
  CHECK(few.comparisons.at(0).verdict == "too few pairs to say anything");
  CHECK_FALSE(few.comparisons.at(0).interval);
  CHECK_FALSE(few.comparisons.at(0).p);
  CHECK(compared(database, "a", "c").comparisons.at(0).verdict ==
        "no pairs: no equal task and seed");
  CHECK(refused_comparison(database, "a", "bb") == "no trial has variant bb; there are a, b, c");
  CHECK(refused_comparison(database, "a", "seed=77") == "seed=77: no trial is selected");
}

TEST_CASE("All tasks are compared by the mean of each seed that has all of them", "[questions]") {
  SmallDatabase database;
  const double effects[3][3] = {{0.02, 0.05, 0.04}, {0.01, 0.07, 0.03}, {0.03, 0.06, 0.06}};
  const char* tasks[] = {"cola", "rte", "mrpc"};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::size_t task = 0; task < 3; ++task) {
      const bool is_extra = seed == 3;
      if (is_extra && task == 0) continue;  // this seed lacks a task
      database.scored("a", SmallDatabase::config(tasks[task], seed, 8), 0.5);
      database.scored("b", SmallDatabase::config(tasks[task], seed, 16),
                      0.5 + (is_extra ? 0.3 : effects[task][seed]));
    }
  }
  const CompareResult result = compared(database, "a", "b");
  REQUIRE(result.comparisons.size() == 4);
  const Comparison& all = result.comparisons.back();
  CHECK(all.task.empty());
  CHECK(all.pairs == 3);
  CHECK(*all.effect == Approx(0.37 / 9));
  // scipy.stats.ttest_1samp([0.02, 0.06, 0.13 / 3], 0)
  CHECK(*all.p == Approx(0.07121913217321074));
}

TEST_CASE("Differences that are equal as decimals are not tested", "[questions]") {
  SmallDatabase database;
  for (const std::int64_t seed : {150, 155, 161}) {
    const auto number = static_cast<std::uint64_t>(seed);
    const auto right = static_cast<double>(seed);
    database.scored("a", SmallDatabase::config("cola", number, 8), right / 204);
    database.scored("b", SmallDatabase::config("cola", number, 16), (right + 3) / 204);
    database.scored("c", SmallDatabase::config("cola", number, 32), right / 204);
  }
  const CompareResult result = compared(database, "a", "b");
  CHECK_FALSE(result.comparisons.at(0).p);
  CHECK_FALSE(result.comparisons.at(0).interval);
  CHECK_FALSE(result.comparisons.at(0).standardised);
  CHECK(result.comparisons.at(0).verdict == "the same difference in every pair: no test");
  CHECK(compared(database, "a", "c").comparisons.at(0).verdict == "equal in every pair");
}

TEST_CASE("An undefined score makes the comparison undefined", "[questions]") {
  SmallDatabase database;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const bool collapsed = seed == 3;
    database.scored("a", SmallDatabase::config("cola", seed, 8),
                    0.5 + 0.01 * static_cast<double>(seed));
    database.scored(
        "b", SmallDatabase::config("cola", seed, 16),
        collapsed ? std::nullopt : std::optional(0.7 + 0.02 * static_cast<double>(seed)));
  }
  const Comparison comparison = compared(database, "a", "b").comparisons.at(0);
  CHECK(comparison.verdict == "undefined: b has 1 undefined score");
  CHECK(comparison.pairs == 4);
  CHECK(*comparison.baseline_mean == Approx(0.515));
  CHECK_FALSE(comparison.mean);
  CHECK_FALSE(comparison.effect);
  CHECK_FALSE(comparison.p);
  CHECK(compared(database, "b", "a").comparisons.at(0).verdict ==
        "undefined: b has 1 undefined score");
}

TEST_CASE("The best trial is selected on validation, and shown with its test score",
          "[questions]") {
  SmallDatabase database;
  const auto trial = [&](std::uint64_t seed, double validation, double test) {
    const std::string id = database.add("a", SmallDatabase::config("cola", seed));
    database.finish(id, {{9, "validation", "cola", "matthews", validation},
                         {9, "test", "cola", "matthews", test}});
  };
  trial(1, 0.5, 0.9);
  trial(2, 0.75, 0.25);
  trial(3, 0.75, 0.5);
  const results::ScoreReader reader(database.file());
  const BestResult found = best(reader, {});
  REQUIRE(found.trials.size() == 1);
  CHECK(found.trials[0].trial_id == "t2");
  CHECK(found.trials[0].test == 0.25);
  CHECK(found.fields == std::vector<std::string>{"variant", "seed"});
  BestRequest request;
  request.split = "test";
  request.top = 2;
  CHECK(best(reader, request).trials.at(1).trial_id == "t3");
  request.higher_is_better = false;
  CHECK(best(reader, request).trials.at(0).trial_id == "t2");
  request.metric = "mathews";
  CHECK_THROWS_WITH(best(reader, request),
                    "unknown metric \"mathews\"; did you mean \"matthews\"?");
}

TEST_CASE("The best trials are counted for each task", "[questions]") {
  SmallDatabase database;
  for (const std::uint64_t seed : {1, 2, 3}) {
    database.scored("a", SmallDatabase::config("cola", seed), 0.1 * static_cast<double>(seed));
  }
  database.scored("a", SmallDatabase::config("rte", 4), 0.5);
  BestRequest request;
  request.split = "test";
  request.top = 2;
  std::vector<std::string> found;
  for (const BestTrial& one : best(results::ScoreReader(database.file()), request).trials) {
    found.push_back(one.task + " " + one.trial_id);
  }
  CHECK(found == std::vector<std::string>{"cola t3", "cola t2", "rte t4"});
}

TEST_CASE("The verdict on a loss favours the lower one", "[questions]") {
  SmallDatabase database;
  const double effects[] = {0.10, 0.12, 0.11};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    database.scored("low", SmallDatabase::config("cola", seed, 8), 0.5, "loss");
    database.scored("high", SmallDatabase::config("cola", seed, 16), 0.5 + effects[seed], "loss");
    database.scored("odd", SmallDatabase::config("rte", seed, 8), 0.5, "oddness");
    database.scored("odder", SmallDatabase::config("rte", seed, 16), 0.5 + effects[seed],
                    "oddness");
  }
  CHECK(compared(database, "low", "high").comparisons.at(0).verdict == "low is better");
  CHECK(compared(database, "high", "low").comparisons.at(0).verdict == "low is better");
  // The better direction of this metric is unknown.
  CHECK(compared(database, "odd", "odder").comparisons.at(0).verdict == "odder is higher");
  CHECK(compared(database, "odder", "odd").comparisons.at(0).verdict == "odd is lower");
}

TEST_CASE("A sparkline shows the shape of any numbers", "[questions]") {
  using Values = std::vector<std::optional<double>>;
  CHECK(sparkline(Values{}).empty());
  CHECK(sparkline(Values{1.0, 1.0}) == "▄▄");
  CHECK(sparkline(Values{0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline(Values{0.0, std::nullopt, INFINITY, 1.0}) == "▁  █");
  CHECK(sparkline(Values{-1e308, 1e308, 0.0}) == "▁█▅");
  CHECK(sparkline(Values{1e308, 1e308, 0.0, 0.0}, 2) == "█▁");
}

}  // namespace petlab::questions
