#include "sweeps/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sweeps/sweep_file.h"
#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::sweeps {
namespace {

using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;

const std::string kSearched = "sweep: t\nbase: {backbone: minilm, task: mrpc}\n";

/// Rate, bottleneck and kind of each trial.
using Point = std::tuple<double, std::int64_t, std::string>;
std::vector<Point> points(const Sweep& sweep) {
  std::vector<Point> all;
  for (const SweepTrial& trial : sweep.trials) {
    all.emplace_back(trial.config.training.learning_rate, trial.config.module.bottleneck,
                     trial.config.module.kind);
  }
  return all;
}

TEST_CASE("A search draws its points from the seed, the field and the index alone", "[sweeps]") {
  const Home home;
  const std::string fields =
      "search:\n  training.learning_rate: log(1e-5, 1e-2)\n"
      "  module.bottleneck: log(4, 64)\n  search_seed: 1\n";
  // By a few lines of Python from SHA-256 of "1\ntraining.learning_rate\n0" and so on.
  const std::vector<Point> drawn = {{1.048e-05, 15, "adapter"},
                                    {0.005317, 15, "adapter"},
                                    {0.0009988, 5, "adapter"},
                                    {0.001843, 36, "adapter"}};
  CHECK(points(home.load(kSearched + fields + "  trials: 4\n")) == drawn);
  CHECK(points(home.load(kSearched + fields + "  trials: 2\n  by: random\n")) ==
        std::vector<Point>{drawn[0], drawn[1]});
  const Sweep more = home.load(kSearched + fields + "  user.x: uniform(0, 1)\n  trials: 4\n");
  CHECK(points(more) == drawn);
  CHECK(more.trials[0].config.user != more.trials[1].config.user);
  CHECK(points(home.load(kSearched + "search: {training.learning_rate: 'log(1e-5, 1e-2)', "
                                     "search_seed: 2, trials: 1}\n"))[0] != drawn[0]);
}

TEST_CASE("The points of a search multiply with variants and the grid", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(
      kSearched +
      "variants: {a: {module.mask: none}, b: {module.mask: learned}}\n"
      "search: {training.learning_rate: 'log(1e-5, 1e-2)', trials: 3}\ngrid: {seed: 1..2}\n");
  REQUIRE(sweep.trials.size() == 12);
  for (std::size_t at = 0; at < 6; ++at) {
    const TrialConfig& one = sweep.trials[at].config;
    CHECK(one.training.learning_rate == sweep.trials[at + 6].config.training.learning_rate);
    CHECK(one.training.learning_rate == sweep.trials[at / 2 * 2].config.training.learning_rate);
    CHECK(one.seed.value == 1 + at % 2);
  }
}

TEST_CASE("A search chooses from lists, and leaves out what repeats", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(
      kSearched + "search: {module.bottleneck: [8, 16, 24..26], task: [mrpc, rte], trials: 200}\n");
  CHECK(sweep.trials.size() == 10);
  CHECK(sweep.notes ==
        Strings{(home.folder().path() / "sweep.yaml").string() +
                ": search: 10 of 200 points are different; the others are left out"});
}

TEST_CASE("Draws are uniform, and cover a range with both of its ends", "[sweeps]") {
  double mean = 0;
  double below = 0;
  std::set<std::string> whole;
  const SearchRange log{true, "1e-4", "1"};
  const SearchRange few{false, "-1", "2"};
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = search_draw(7, "user.x", i);
    mean += draw / kDraws;
    below += (std::stod(value_in_range(log, false, draw)) < 0.01) / double{kDraws};
    whole.insert(value_in_range(few, true, draw));
  }
  CHECK(std::abs(mean - 0.5) < 0.02);
  CHECK(std::abs(below - 0.5) < 0.03);
  CHECK(whole == std::set<std::string>{"-1", "0", "1", "2"});
  CHECK(value_in_range({false, "0.12344", "0.12349"}, false, 0) == "0.12344");
  CHECK(value_in_range({false, "0.12344", "0.12349"}, false, 0.999) == "0.12349");
  CHECK(value_in_range({true, "1", "9"}, true, std::nextafter(1, 0)) == "9");
}

TEST_CASE("Mistakes in search name what was found and expected", "[sweeps]") {
  const Home home;
  const auto problems = [&](const std::string& text) {
    return home.problems(kSearched + "search: " + text + "\n");
  };
  const std::string rate = "sweep.yaml:3: training.learning_rate: found ";
  const std::string ranges =
      ", expected log(LOW, HIGH) or uniform(LOW, HIGH), in quotes if between braces";
  const auto rate_of = [&](const std::string& text) {
    return problems(fmt::format("{{training.learning_rate: '{}', trials: 3}}", text));
  };
  CHECK(rate_of("log(1, 1e-5)") == Strings{rate + "'log(1, 1e-5)' (the range is empty)" + ranges});
  CHECK(rate_of("log(0, 1)") == Strings{rate + "'log(0, 1)' (zero has no logarithm)" + ranges});
  CHECK(rate_of("log(1e-5)") == Strings{rate + "'log(1e-5)' (two numbers are missing)" + ranges});
  CHECK(rate_of("uniform(a, b)") == Strings{rate + "'uniform(a, b)' ('a' is no number)" + ranges});
  CHECK(rate_of("normal(0, 1)") ==
        Strings{rate + "'normal(0, 1)', expected log(LOW, HIGH), uniform(LOW, HIGH) or a list of "
                       "values"});
  CHECK(rate_of("uniform(0, 1)") == Strings{rate + "0, expected a number > 0"});
  CHECK(problems("{training.learning_rate: log(1e-5, 1e-2), trials: 3}") ==
        Strings{"sweep.yaml:3: search: found '1e-2)', expected a field of a trial",
                rate + "'log(1e-5' (two numbers are missing)" + ranges});
  CHECK(problems("{module.kind: 'uniform(1, 2)', trials: 3}") ==
        Strings{"sweep.yaml:3: module.kind: found a range of numbers, expected a list of values"});
  CHECK(problems("{training.epochs: 'uniform(0.5, 3)', trials: 3}") ==
        Strings{"sweep.yaml:3: training.epochs: found 0.5, expected a whole number from 1 to "
                "1000000000"});
  CHECK(problems("{trials: 3}") ==
        Strings{"sweep.yaml:3: search: found no field, expected a field with log(LOW, HIGH), "
                "uniform(LOW, HIGH) or a list of values"});
  CHECK(
      problems("{seed: [1], by: tpe, search_seed: x}") ==
      Strings{"sweep.yaml:3: search.by: found 'tpe', expected random",
              "sweep.yaml:3: search.search_seed: found 'x', expected a whole number",
              "sweep.yaml:3: search.trials: found nothing, expected how many points to draw, from "
              "1 to 1000000"});
  CHECK(problems("{seed: [1], trials: 1, search_seed: 9223372036854775808}") ==
        Strings{"sweep.yaml:3: search.search_seed: found 9223372036854775808, expected a whole "
                "number"});
  CHECK(problems("{seed: [1], trials: 1000001}") ==
        Strings{"sweep.yaml:3: search.trials: found 1000001, expected how many points to draw, "
                "from 1 to 1000000"});
  CHECK(problems("[1]") == Strings{"sweep.yaml:3: search: found a list, expected a group of keys"});
}

}  // namespace
}  // namespace petlab::sweeps
