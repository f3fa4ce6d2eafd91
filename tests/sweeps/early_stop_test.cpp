#include "sweeps/early_stop.h"

#include "sweeps/sweep_file.h"
#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::sweeps {
namespace {

using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;

const std::string kSweep =
    "sweep: t\nbase: {backbone: minilm, task: mrpc}\nvariants: {a: {seed: 1}, b: {seed: 2}}\n";

TEST_CASE("The rules of stop_early are read with their defaults", "[sweeps]") {
  const Home home;
  const auto rule = [&](const std::string& text) {
    return home.load(kSweep + "stop_early: " + text + "\n").early_stop;
  };
  EarlyStopRule expected;
  expected.at = {1, 3, 9};
  CHECK(rule("{rule: halving, at: [1, 3, 9]}") == expected);
  expected.keep = 0.25;
  expected.metric = "f1";
  CHECK(rule("{rule: halving, at: [1, 3, 9], keep: 1/4, metric: f1}") == expected);
  CHECK(rule("{rule: halving, at: [1, 3, 9], keep: 0.25, metric: f1}") == expected);
  expected = {};
  expected.kind = EarlyStopRule::Kind::median;
  CHECK(rule("{rule: median}") == expected);
  expected.kind = EarlyStopRule::Kind::paired;
  CHECK(rule("{rule: paired, against: best, p: 0.05}") == expected);
  expected.against = "b";
  expected.after = 2;
  expected.p = 0.01;
  CHECK(rule("{rule: paired, against: b, after: 2, p: 0.01}") == expected);
  CHECK_FALSE(home.load(kSweep).early_stop);
  CHECK_FALSE(rule("~"));
}

TEST_CASE("stop_early changes no trial id", "[sweeps]") {
  const Home home;
  const Sweep without = home.load(kSweep);
  const Sweep with = home.load(kSweep + "stop_early: {rule: median}\n");
  REQUIRE(with.trials.size() == without.trials.size());
  for (std::size_t at = 0; at < with.trials.size(); ++at) {
    CHECK(with.trials[at].id == without.trials[at].id);
  }
}

TEST_CASE("Mistakes in stop_early name what was found and expected", "[sweeps]") {
  const Home home;
  const auto problems = [&](const std::string& text) {
    return home.problems(kSweep + "stop_early: " + text + "\n");
  };
  CHECK(problems("thirds") ==
        Strings{"sweep.yaml:4: stop_early: found 'thirds', expected a group such as {rule: "
                "halving, at: [1, 3, 9], keep: 1/3}"});
  CHECK(problems("{keep: 1/3}") == Strings{"sweep.yaml:4: stop_early.rule: found nothing, expected "
                                           "halving, median or paired"});
  CHECK(problems("{rule: thirds}") ==
        Strings{"sweep.yaml:4: stop_early.rule: found 'thirds', expected halving, median or "
                "paired"});
  CHECK(problems("{rule: halving}") ==
        Strings{"sweep.yaml:4: stop_early.at: found nothing, expected a list of validations, such "
                "as [1, 3, 9]"});
  CHECK(problems("{rule: halving, at: [3, 1], keep: 3/1}") ==
        Strings{"sweep.yaml:4: stop_early.at: found 1, expected a validation, from 4",
                "sweep.yaml:4: stop_early.keep: found '3/1', expected a fraction between 0 and 1, "
                "such as 1/3"});
  CHECK(problems("{rule: median, aftr: 3}") ==
        Strings{"sweep.yaml:4: stop_early: found 'aftr', expected a key of median: rule, metric, "
                "after (nearest: after)"});
  CHECK(problems("{rule: paired, against: c, p: 1}") ==
        Strings{"sweep.yaml:4: stop_early.against: found 'c', expected the name of a variant",
                "sweep.yaml:4: stop_early.p: found 1, expected a number above 0, at most 0.5"});
  CHECK(problems("{rule: median, metric: matthews}") ==
        Strings{"sweep.yaml:4: stop_early.metric: found matthews, expected a metric of task mrpc "
                "whose better direction is known: accuracy, f1"});
}

}  // namespace
}  // namespace petlab::sweeps
