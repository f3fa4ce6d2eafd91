#include "metrics/example_comparison.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "metrics/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab::metrics;

namespace {

using ExampleLines = std::vector<std::string>;

const ExampleLines kTexts = {"the old boat was painted", "a letter lay on the table",
                             "it rained all day",        "every student was running",
                             "the crane had stopped",    "a quiet street"};

// Predictions of which about three in four are correct.
std::vector<SeedPredictions> noisy(const ExampleLines& gold, const ExampleLines& wrong, int seeds) {
  std::mt19937 random(36);
  const auto predict = [&] {
    ExampleLines predicted;
    for (std::size_t i = 0; i < gold.size(); ++i) {
      predicted.push_back(random() % 4 == 0 ? wrong[random() % wrong.size()] : gold[i]);
    }
    return predicted;
  };
  std::vector<SeedPredictions> predictions;
  for (int seed = 0; seed < seeds; ++seed) {
    predictions.push_back({std::to_string(40 + seed), {gold, predict()}, {gold, predict()}});
  }
  return predictions;
}

ExampleLines repeated(const ExampleLines& lines, std::size_t count) {
  ExampleLines all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(lines[i % lines.size()]);
  return all;
}

std::vector<SeedPredictions> without(std::vector<SeedPredictions> seeds, std::size_t example) {
  for (SeedPredictions& seed : seeds) {
    for (KeptPredictions* kept : {&seed.a, &seed.b}) {
      kept->gold.erase(kept->gold.begin() + static_cast<std::ptrdiff_t>(example));
      kept->predicted.erase(kept->predicted.begin() + static_cast<std::ptrdiff_t>(example));
    }
  }
  return seeds;
}

double system_difference(const MetricRow& metric, const std::vector<SeedPredictions>& seeds) {
  return compare_examples(metric, seeds, {.replicates = 1}).bootstrap->difference;
}

}  // namespace

TEST_CASE("every metric can compare examples, and its error is the jackknife's", "[metrics]") {
  for (const MetricRow& metric : metric_table()) {
    INFO(metric.name);
    std::vector<SeedPredictions> seeds;
    if (metric.input == MetricInput::labels) {
      seeds = noisy(repeated({"0", "1", "1"}, 18), {"0", "1", "none"}, 3);
    } else if (metric.input == MetricInput::scores) {
      seeds = noisy(repeated({"1.5", "2", "4.25", "3", "0"}, 18), {"1", "3.5", "none"}, 3);
    } else {
      seeds = noisy(repeated(kTexts, 18), {"a boat", "the student lay on a street"}, 3);
    }
    const auto comparison = compare_examples(metric, seeds, {.replicates = 50});
    CHECK(comparison.examples == 18);
    CHECK(comparison.mcnemar.size() == (metric.name == "accuracy" ? 3 : 0));
    REQUIRE(comparison.bootstrap);
    double sum = 0;
    for (std::size_t i = 0; i < 18; ++i) sum += system_difference(metric, without(seeds, i));
    double squares = 0;
    for (std::size_t i = 0; i < 18; ++i) {
      const double influence = 17 * (sum / 18 - system_difference(metric, without(seeds, i)));
      squares += influence * influence;
    }
    CHECK(comparison.bootstrap->example_error ==
          Approx(std::sqrt(squares / (18 * 17))).epsilon(1e-9));
    if (metric.input != MetricInput::text) continue;
    const auto of = [&](const KeptPredictions& kept) {
      return metric.of_texts(kept.gold, kept.predicted).value();
    };
    CHECK(comparison.bootstrap->by_seed[1] == Approx(of(seeds[1].a) - of(seeds[1].b)));
  }
}

TEST_CASE("accuracy counts the examples that only one system gets right", "[metrics]") {
  const ExampleLines gold = {"0", "1", "2", "0", "1", "2"};
  const SeedPredictions seed = {
      "42", {gold, {"0", "1", "2", "0", "0", "none"}}, {gold, {"1", "1", "1", "none", "1", "0"}}};
  const auto comparison = compare_examples(metric_named("accuracy"), std::vector{seed});
  REQUIRE(comparison.mcnemar.size() == 1);
  CHECK(comparison.mcnemar[0].only_a == 3);
  CHECK(comparison.mcnemar[0].only_b == 1);
  CHECK(comparison.mcnemar[0].p == mcnemar(3, 1).p);
  CHECK(comparison.bootstrap->difference == Approx(2.0 / 6));
  CHECK_FALSE(comparison.bootstrap->both);
  CHECK(limit_of(*comparison.bootstrap) == Limit::seeds);
}

TEST_CASE("a missing answer counts as the opposite of two classes, or as none of several",
          "[metrics]") {
  const ExampleLines gold = {"0", "1", "1", "1"};
  const std::vector<SeedPredictions> seeds = {
      {"1", {gold, {"none", "1", "1", "none"}}, {gold, {"1", "1", "1", "0"}}}};
  CHECK(system_difference(metric_named("f1"), seeds) == 0);
  CHECK(system_difference(metric_named("matthews"), seeds) == Approx(0).margin(1e-15));
  const auto three = compare_examples(metric_named("matthews"), seeds, {.replicates = 1}, 3);
  CHECK(std::abs(three.bootstrap->difference) > 0.01);
}

TEST_CASE("predictions are compared only on the same examples", "[metrics]") {
  const ExampleLines gold = {"0", "1", "1"};
  const auto message = [&](const KeptPredictions& kept, const std::string& metric = "accuracy") {
    const std::vector<SeedPredictions> seeds = {{"42", {gold, gold}, {gold, gold}},
                                                {"43", {gold, gold}, kept}};
    try {
      compare_examples(metric_named(metric), seeds, {}, 2);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string same =
      " as of the first seed; all systems and seeds must be scored on the same examples";
  CHECK(message({{"0", "1"}, {"0", "1"}}) ==
        "seed 43: 2 answers and 2 predictions, expected 3" + same);
  CHECK(message({gold, {"0", "1"}}) == "seed 43: 3 answers and 2 predictions, expected 3" + same);
  CHECK(message({{"0", "0", "1"}, gold}) ==
        "seed 43, example 2: the answer is '0', expected '1'" + same);
  CHECK(message({gold, {"0", "yes", "1"}}) ==
        "seed 43, example 2: found 'yes', expected a class or \"none\"");
  CHECK(message({gold, {"0", "-1", "1"}}) ==
        "seed 43, example 2: found '-1', expected a class or \"none\"");
  CHECK(message({gold, {"0", "1", "x"}}, "pearson") ==
        "seed 43, example 3: found 'x', expected a number or \"none\"");
  CHECK(message({gold, {"0", "1", "2"}}) ==
        "the predictions have a class 2, the task has 2 classes");
  CHECK(message({gold, gold}) == "no error");
  CHECK_THROWS_WITH(compare_examples(metric_named("f1"), {}),
                    "no seeds: a comparison needs at least 1");
}

TEST_CASE("kept predictions are read in the format that trials write", "[metrics]") {
  const petlab::testing::TempDir folder;
  const KeptPredictions labels = read_predictions(folder.write("t.gold.txt", "0\n2\n"),
                                                  folder.write("t.predicted.txt", "1\nnone\n"));
  CHECK(labels.gold == ExampleLines{"0", "2"});
  CHECK(labels.predicted == ExampleLines{"1", "none"});
  const KeptPredictions texts =
      read_predictions(folder.write("t.gold.jsonl", "\"a\\nb\"\n\"c\"\n"),
                       folder.write("t.predicted.jsonl", "\"\"\n\"d e\"\n"));
  CHECK(texts.gold == ExampleLines{"a\nb", "c"});
  CHECK(texts.predicted == ExampleLines{"", "d e"});
  CHECK_THROWS_AS(read_predictions(folder.path() / "t.gold.txt", folder.path() / "none"),
                  InputError);
  CHECK_THROWS_AS(read_predictions(folder.path() / "t.gold.txt", folder.write("short.txt", "0\n")),
                  InputError);
}
