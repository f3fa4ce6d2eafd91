#include "metrics/crossed_bootstrap.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "metrics/example_comparison.h"
#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::number;
using petlab::testing::read_json;

namespace {

using Values = std::vector<std::vector<double>>;  // (seeds, examples)

// A metric that is the mean of the examples' values.
class MeanExamples : public PairedExamples {
 public:
  explicit MeanExamples(Values differences) : differences_(std::move(differences)) {}
  std::size_t seeds() const override { return differences_.size(); }
  std::size_t examples() const override {
    return differences_.empty() ? 0 : differences_.front().size();
  }
  std::optional<double> difference(std::size_t seed,
                                   std::span<const std::uint32_t> times) const override {
    double sum = 0;
    double n = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      sum += times[i] * differences_[seed][i];
      n += times[i];
    }
    if (std::isnan(sum)) return std::nullopt;
    return sum / n;
  }

 private:
  Values differences_;
};

// Converts "0101" or [250, 311] to one line for each example.
std::vector<std::string> example_lines(const nlohmann::json& examples) {
  std::vector<std::string> lines;
  if (examples.is_string()) {
    for (const char label : examples.get<std::string>()) lines.emplace_back(1, label);
  } else {
    for (const auto& value : examples) lines.push_back(value.dump());
  }
  return lines;
}

std::vector<SeedPredictions> predictions_of_row(const nlohmann::json& row) {
  const std::vector<std::string> gold = example_lines(row.at("gold"));
  std::vector<SeedPredictions> seeds;
  for (std::size_t seed = 0; seed < row.at("a").size(); ++seed) {
    seeds.push_back({.seed = std::to_string(seed),
                     .a = {gold, example_lines(row.at("a")[seed])},
                     .b = {gold, example_lines(row.at("b")[seed])}});
  }
  return seeds;
}

void check_interval(const nlohmann::json& expected, const Interval& interval,
                    std::array<double, 2> tolerance) {
  CHECK(interval.low == Approx(number(expected.at(0))).margin(tolerance[0]));
  CHECK(interval.high == Approx(number(expected.at(1))).margin(tolerance[1]));
}

// Five standard deviations of the interval's ends, for this number of replicates.
std::array<double, 2> monte_carlo_tolerance(const nlohmann::json& deviations, double step,
                                            double n_boot, double replicates) {
  const double scale = 5 * std::sqrt(n_boot / replicates);
  return {scale * number(deviations.at(0)) + step, scale * number(deviations.at(1)) + step};
}

// The resampling to compare: of seeds and examples, or of examples only if there is one seed.
const ResampledDifference& of_case(const CrossedBootstrap& bootstrap) {
  return bootstrap.both ? *bootstrap.both : bootstrap.examples;
}

}  // namespace

TEST_CASE("the bootstrap has the same replicates as numpy's", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "bootstrap.json");
  for (const auto& row : file.at("cases")) {
    const auto seeds = predictions_of_row(row);
    for (const auto& [name, expected] : row.at("metrics").items()) {
      INFO(row.at("name").get<std::string>() + " " + name);
      const auto bootstrap =
          compare_examples(metric_named(name), seeds, {.replicates = 1000, .threads = 2}).bootstrap;
      REQUIRE(bootstrap);
      CHECK(bootstrap->difference == Approx(number(expected.at("difference"))).margin(1e-9));
      if (expected.contains("a")) {
        for (std::size_t i = 0; i < seeds.size(); ++i) {
          const double by_seed = number(expected.at("a")[i]) - number(expected.at("b")[i]);
          CHECK(bootstrap->by_seed[i] == Approx(by_seed).margin(1e-9));
        }
      }
      const ResampledDifference& drawn = of_case(*bootstrap);
      CHECK(drawn.acceleration == Approx(number(expected.at("acceleration"))).margin(1e-9));
      const auto& run = expected.at(seeds.size() > 1 ? "crossed" : "nested").at("numpy_run");
      check_interval(run.at("percentile"), drawn.percentile, {1e-9, 1e-9});
      REQUIRE(drawn.bca);
      // In numpy, equal fractions can differ in their last bits, which changes the bias correction
      // of a metric with values on a grid.
      const bool grid = name == "accuracy" && !run.value("exact_ties", false);
      const double step =
          grid ? 1.0 / static_cast<double>(seeds.size() * example_lines(row.at("gold")).size())
               : 1e-9;
      check_interval(run.at("bca"), *drawn.bca, {step, step});
      ran++;
    }
  }
  petlab::testing::golden_ran("statistics/bootstrap", ran);
}

TEST_CASE("intervals of the bootstrap match 100,000 replicates of numpy",
          "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  const auto file = read_json(*folder / "bootstrap.json");
  const double n_boot = file.at("n_boot");
  constexpr std::int64_t kReplicates = 2000;
  int ran = 0;
  for (const auto& row : file.at("cases")) {
    const auto seeds = predictions_of_row(row);
    const auto steps = static_cast<double>(seeds.size() * example_lines(row.at("gold")).size());
    for (const auto& [name, values] : row.at("metrics").items()) {
      INFO(row.at("name").get<std::string>() + " " + name);
      const auto bootstrap = compare_examples(metric_named(name), seeds,
                                              {.replicates = kReplicates, .seed = 7, .threads = 2})
                                 .bootstrap;
      REQUIRE(bootstrap);
      const ResampledDifference& drawn = of_case(*bootstrap);
      const auto& expected = values.at(seeds.size() > 1 ? "crossed" : "nested");
      const double step = name == "accuracy" ? 1 / steps : 1e-6;
      const auto close = [&](const char* deviations) {
        return monte_carlo_tolerance(expected.at(deviations), step, n_boot, kReplicates);
      };
      check_interval(expected.at("percentile"), drawn.percentile, close("percentile_sd"));
      check_interval(expected.at("bca"), *drawn.bca, close("bca_sd"));
      const double scale = 5 * std::sqrt(n_boot / kReplicates);
      CHECK(drawn.bias_correction ==
            Approx(number(expected.at("z0"))).margin(scale * number(expected.at("z0_sd"))));
      CHECK(drawn.deviation == Approx(number(expected.at("sd_of_difference")))
                                   .margin(scale * number(expected.at("sd_of_difference_sd"))));
      ran++;
    }
  }
  petlab::testing::golden_ran("statistics/bootstrap intervals", ran);
}

TEST_CASE("a bootstrap depends on its seed, but not on threads", "[metrics]") {
  Values values(4, std::vector<double>(30));
  for (std::size_t seed = 0; seed < values.size(); ++seed) {
    for (std::size_t i = 0; i < 30; ++i) {
      values[seed][i] = std::sin(static_cast<double>(7 * seed + 3 * i * i));
    }
  }
  const MeanExamples pairs(values);
  const auto one = crossed_bootstrap(pairs, {.replicates = 999});
  const auto many = crossed_bootstrap(pairs, {.replicates = 999, .threads = 5});
  const auto other = crossed_bootstrap(pairs, {.replicates = 999, .seed = 1});
  REQUIRE(one->both);
  CHECK(*one->both->bca == *many->both->bca);
  CHECK(one->both->p == many->both->p);
  CHECK(one->examples.percentile == many->examples.percentile);
  CHECK_FALSE(*one->both->bca == *other->both->bca);
}

TEST_CASE("p is below 5 % roughly when the 95 % interval excludes 0", "[metrics]") {
  int inside = 0;
  int outside = 0;
  for (int shift = -20; shift <= 20; ++shift) {
    Values values(5, std::vector<double>(40));
    for (std::size_t seed = 0; seed < values.size(); ++seed) {
      for (std::size_t i = 0; i < 40; ++i) {
        values[seed][i] = shift * 0.03 + std::sin(static_cast<double>(11 * seed + i * i));
      }
    }
    const auto bootstrap = crossed_bootstrap(MeanExamples(values), {.replicates = 2000});
    INFO("shift " << shift);
    for (const ResampledDifference& one : {*bootstrap->both, bootstrap->examples}) {
      const bool excludes = one.bca->low > 0 || one.bca->high < 0;
      (excludes ? outside : inside)++;
      CHECK((excludes ? one.p < 0.055 : one.p > 0.045));
    }
  }
  CHECK(inside > 10);
  CHECK(outside > 10);
}

TEST_CASE("the comparison is limited by seeds or examples, whichever vary more", "[metrics]") {
  Values by_seed(6, std::vector<double>(50));
  Values by_example = by_seed;
  for (std::size_t seed = 0; seed < 6; ++seed) {
    for (std::size_t i = 0; i < 50; ++i) {
      const double noise = 0.01 * std::sin(static_cast<double>(13 * seed + i * i));
      by_seed[seed][i] = std::sin(static_cast<double>(5 * seed)) + noise;
      by_example[seed][i] = std::sin(static_cast<double>(i)) + noise;
    }
  }
  const auto seeds = crossed_bootstrap(MeanExamples(by_seed), {.replicates = 500});
  CHECK(limit_of(*seeds) == Limit::seeds);
  CHECK(seeds->both->deviation > 10 * seeds->examples.deviation);
  CHECK(*seeds->seed_error == Approx(*standard_error(seeds->by_seed)));
  const auto examples = crossed_bootstrap(MeanExamples(by_example), {.replicates = 500});
  CHECK(limit_of(*examples) == Limit::examples);
  CHECK(examples->both->deviation == Approx(examples->examples.deviation).epsilon(0.05));
  // For a mean, the jackknife gives the standard error.
  CHECK(examples->example_error == Approx(*standard_error(by_example[0])).epsilon(0.02));
}

TEST_CASE("a t test with seeds and examples as random effects matches a hand calculation",
          "[metrics]") {
  const MeanExamples pairs(Values{{1, 1}, {1, 3}, {2.5, 3.5}});
  const auto bootstrap = crossed_bootstrap(pairs, {.replicates = 300});
  REQUIRE(bootstrap->two_way);
  // Means of seeds: 1, 2, 3. Means of examples: 1.5, 2.5. Residuals: ±0.5, ∓0.5, 0.
  const double total = 2 + 1.5 - 0.5;
  const double freedom = total * total / (2 * 2 / 2.0 + 1.5 * 1.5 / 1 + 0.5 * 0.5 / 2);
  CHECK(bootstrap->two_way->degrees_of_freedom == Approx(freedom));
  const double t = 2 / std::sqrt(total / 6);
  CHECK(bootstrap->two_way->p == Approx(student_t_two_sided_p(t, freedom)));
  CHECK(bootstrap->two_way->interval.high - 2 ==
        Approx(student_t_quantile(0.975, freedom) * std::sqrt(total / 6)));
  CHECK(bootstrap->interval->low ==
        std::min(bootstrap->two_way->interval.low, bootstrap->both->bca->low));
  CHECK(*bootstrap->p == std::max(bootstrap->two_way->p, bootstrap->both->p));
}

TEST_CASE("fewer than three seeds allow no conclusion about other seeds", "[metrics]") {
  const std::vector<double> values = {1, 0, 0, 1, -1, 1, 1, 0, 0, 1};
  for (const std::size_t seeds : {1, 2}) {
    const auto bootstrap =
        crossed_bootstrap(MeanExamples(Values(seeds, values)), {.replicates = 100});
    REQUIRE(bootstrap);
    CHECK_FALSE(bootstrap->both);
    CHECK_FALSE(bootstrap->two_way);
    CHECK_FALSE(bootstrap->p);
    CHECK(bootstrap->examples.percentile.low < bootstrap->difference);
    CHECK(bootstrap->seed_error.has_value() == (seeds == 2));
  }
}

TEST_CASE("equal systems differ by exactly 0", "[metrics]") {
  const auto bootstrap =
      crossed_bootstrap(MeanExamples(Values(3, std::vector<double>(20, 0))), {.replicates = 200});
  CHECK(bootstrap->difference == 0);
  CHECK(*bootstrap->both->bca == Interval{0, 0});
  CHECK(bootstrap->both->p == 1);
}

TEST_CASE("a bootstrap is undefined if the metric of a sample is", "[metrics]") {
  Values values(3, std::vector<double>(20, 0.5));
  values[1][4] = NAN;
  CHECK_FALSE(crossed_bootstrap(MeanExamples(values), {.replicates = 10}));
}

TEST_CASE("a bootstrap refuses invalid samples and options", "[metrics]") {
  const MeanExamples pairs(Values(3, std::vector<double>(20, 0.5)));
  CHECK_THROWS_WITH(crossed_bootstrap(MeanExamples(Values{})),
                    "no seeds: a bootstrap needs at least 1");
  CHECK_THROWS_WITH(crossed_bootstrap(MeanExamples(Values{{1}})),
                    "1 examples: a bootstrap needs 2 to 2^32 - 1");
  CHECK_THROWS_WITH(crossed_bootstrap(pairs, {.replicates = 0}),
                    "replicates is 0, must be at least 1");
  CHECK_THROWS_WITH(crossed_bootstrap(pairs, {.confidence = 1}),
                    "the confidence is 1, must be between 0 and 1");
  CHECK_THROWS_WITH(crossed_bootstrap(pairs, {.threads = 0}), "threads is 0, must be at least 1");
}
