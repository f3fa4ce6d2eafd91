#include "sweeps/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "sweeps/study.h"
#include "sweeps/sweep_file.h"
#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::sweeps {
namespace {

using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

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

// `suggested` is the text of the study's file.
Sweep load_with(const Home& home, const std::string& text, const std::string& suggested) {
  const Sweep first = home.load(text);
  const std::filesystem::path folder = home.folder().path() / "sweeps";
  home.folder().write("sweeps/" + points_file("", first.study->id).string(), suggested);
  return load_sweep(first.file, home.locations(), {}, {}, folder);
}

const std::string kByTpe =
    "search:\n  training.learning_rate: log(1e-5, 1e-2)\n  module.kind: [adapter, lora]\n"
    "  trials: 4\n  by: tpe\n  startup: 2\n";
const std::string kRounds =
    R"({"v":1,"study":"…","sweep":"t","by":"tpe"})"
    "\n"
    R"({"told":2,"seed":7,"sampler":"optuna.samplers.TPESampler","optuna":"5.0.0"})"
    "\n"
    R"({"point":2,"values":{"training.learning_rate":"0.0005","module.kind":"1"}})"
    "\n";

TEST_CASE("A search by TPE has the points of random search first, then those recorded",
          "[sweeps]") {
  const Home home;
  const Sweep random = home.load(kSearched + kByTpe.substr(0, kByTpe.find("  by:")));
  const Sweep first = home.load(kSearched + kByTpe);
  CHECK_FALSE(random.study);
  REQUIRE(first.study);
  CHECK(points(first) == std::vector<Point>{points(random)[0], points(random)[1]});
  CHECK_FALSE(first.study->is_complete());
  CHECK(first.notes == Strings{first.file.string() +
                               ": search: 2 of 4 points are known; petlab run adds the others by "
                               "TPE"});
  const Sweep second = load_with(home, kSearched + kByTpe, kRounds);
  REQUIRE(second.trials.size() == 3);
  CHECK(points(second)[2] == Point{0.0005, 64, "lora"});
  CHECK(second.study->id == first.study->id);
  CHECK(second.study->points[2] == SearchPoint{"0.0005", "1"});
}

TEST_CASE("A study's points say which trials they have, on all other axes", "[sweeps]") {
  const Home home;
  const std::string text = kSearched + kByTpe +
                           "zip: [{training.epochs: [1, 2]}]\ngrid: {seed: [1, 2, 3]}\n"
                           "exclude: [{seed: 3, training.epochs: 2}]\n";
  const Sweep sweep = load_with(
      home, text,
      kRounds + R"({"point":3,"values":{"training.learning_rate":"0.0005","module.kind":"1"}})"
                "\n");
  const Study& study = *sweep.study;
  CHECK(study.is_complete());
  REQUIRE(study.trials_of.size() == 4);
  // Epochs vary slowest; one seed of the second epoch is excluded.
  CHECK(study.trials_of[0] == std::vector<std::size_t>{0, 1, 2, 9, 10});
  CHECK(study.trials_of[2] == std::vector<std::size_t>{6, 7, 8, 13, 14});
  CHECK(study.trials_of[3] == study.trials_of[2]);
  for (const std::size_t trial : study.trials_of[2]) {
    CHECK(sweep.trials[trial].config.training.learning_rate == 0.0005);
  }
  CHECK(sweep.notes == Strings{sweep.file.string() +
                               ": search: 3 of 4 points are different; the others are left out"});
}

TEST_CASE("A study is identified by its space, its seed and its first trials", "[sweeps]") {
  const Home home;
  const auto id = [&](const std::string& text) { return home.load(text).study->id; };
  const std::string usual = id(kSearched + kByTpe);
  CHECK(usual.size() == 16);
  CHECK(id("# a comment\n" + kSearched + kByTpe + "  per_round: 1\n") == usual);
  CHECK(id(kSearched + replaced(kByTpe, "trials: 4", "trials: 40")) == usual);
  CHECK(id(kSearched + replaced(kByTpe, "1e-2", "1e-1")) != usual);
  CHECK(id(kSearched + replaced(kByTpe, "startup: 2", "startup: 3")) != usual);
  CHECK(id(kSearched + kByTpe + "  search_seed: 1\n") != usual);
  CHECK(id(kSearched + kByTpe + "  metric: f1\n") != usual);
  CHECK(id(kSearched + kByTpe + "grid: {seed: [1, 2]}\n") != usual);
}

TEST_CASE("Points are recorded round by round", "[sweeps]") {
  const Home home;
  const std::filesystem::path folder = home.folder().path();
  Study study = *home.load(kSearched + kByTpe).study;
  CHECK(recorded_points(folder, study).empty());
  const std::vector<SearchPoint> suggested = {{"0.0005", "1"}, {"1e-05", "0"}};
  record_points(folder, study, "t", {{suggested[0]}, 2, 7, "5.0.0"});
  CHECK(base::read_file(points_file(folder, study.id), 1 << 20) ==
        replaced(kRounds, "…", study.id));
  CHECK(recorded_points(folder, study) == std::vector<SearchPoint>{suggested[0]});
  study.points.push_back(suggested[0]);
  record_points(folder, study, "t", {{suggested[1]}, 3, 8, "5.0.0"});
  CHECK(recorded_points(folder, study) == suggested);

  const auto problem = [&](const std::string& text) {
    home.folder().write(study.id + ".points", text);
    try {
      recorded_points(folder, study);
    } catch (const base::Error& error) {
      return std::string(error.what()).substr(points_file(folder, study.id).string().size());
    }
    return std::string();
  };
  CHECK(problem("{\"v\":2}\n") == ":1: v is 2, must be 1: written by a newer petlab");
  CHECK(problem("hello\n").starts_with(":1: cannot be understood: column 1: "));
  CHECK(problem("{\"v\":1}\n{\"point\":2,\"values\":{\"training.learning_rate\":\"1\"}}\n")
            .starts_with(":2: cannot be understood: key 'module.kind' not found"));
  CHECK(problem(replaced(kRounds, "\"1\"", "\"2\"")) ==
        ":3: module.kind is 2, must be the index of a choice");
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
  CHECK(nearest_in_range({false, "1", "9"}, true, 3.6) == "4");
  CHECK(nearest_in_range({true, "1e-5", "1e-2"}, false, 0.000123456) == "0.0001235");
  CHECK(nearest_in_range({true, "1e-5", "1e-2"}, false, 2) == "1e-2");
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
      problems("{seed: [1], by: grid, search_seed: x}") ==
      Strings{"sweep.yaml:3: search.by: found 'grid', expected random or tpe",
              "sweep.yaml:3: search.search_seed: found 'x', expected a whole number",
              "sweep.yaml:3: search.trials: found nothing, expected how many points to draw, from "
              "1 to 1000000"});
  CHECK(problems("{seed: [1], trials: 1, search_seed: 9223372036854775808}") ==
        Strings{"sweep.yaml:3: search.search_seed: found 9223372036854775808, expected a whole "
                "number"});
  CHECK(problems("{seed: [1], trials: 1000001}") ==
        Strings{"sweep.yaml:3: search.trials: found 1000001, expected how many points to draw, "
                "from 1 to 1000000"});
  CHECK(problems("{seed: [1], trials: 3, startup: 1}") ==
        Strings{"sweep.yaml:3: search: found 'startup', expected a field of a trial"});
  CHECK(problems("{seed: [1], trials: 3, by: tpe, startup: 0, per_round: x, metric: []}") ==
        Strings{"sweep.yaml:3: search.metric: found a list, expected the name of a metric",
                "sweep.yaml:3: search.per_round: found 'x', expected how many points to suggest "
                "together, from 1 to 1000000",
                "sweep.yaml:3: search.startup: found 0, expected how many points to draw at random "
                "first, from 1 to 1000000"});
  CHECK(problems("{seed: [1], trials: 3, by: tpe, metric: bleu}") ==
        Strings{"sweep.yaml:3: search.metric: found bleu, expected a metric of task mrpc whose "
                "better direction is known: accuracy, f1"});
  CHECK(problems("[1]") == Strings{"sweep.yaml:3: search: found a list, expected a group of keys"});
}

}  // namespace
}  // namespace petlab::sweeps
