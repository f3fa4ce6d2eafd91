#include "metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::numbers;
using petlab::testing::read_json;
using petlab::testing::read_json_lines;

namespace {

using Numbers = std::vector<double>;

struct Columns {
  Numbers x;
  Numbers y;
};

Columns random_columns(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Columns columns;
  for (std::size_t i = 0; i < n; ++i) {
    columns.x.push_back(normal(random));
    columns.y.push_back(0.5 * columns.x.back() + normal(random));
  }
  return columns;
}

void check_correlation(const nlohmann::json& expected, std::optional<double> value) {
  if (expected.at("library") == "undefined") {
    CHECK(!value);
    return;
  }
  REQUIRE(value);
  CHECK(*value == Approx(expected.at("library").get<double>())
                      .margin(expected.at("tolerance").get<double>())
                      .epsilon(0));
}

}  // namespace

TEST_CASE("correlations match exact arithmetic", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  for (const auto& row : read_json_lines(*folder / "glue_regression.jsonl")) {
    INFO(row.at("name").get<std::string>());
    const Numbers gold = numbers(row.at("gold"));
    const Numbers predicted = numbers(row.at("pred"));
    check_correlation(row.at("pearson"), pearson(gold, predicted));
    check_correlation(row.at("spearman"), spearman(gold, predicted));
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_regression", ran);
}

TEST_CASE("correlations of a million pairs match scipy's values", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "glue_big.json");
  for (const auto& row : file.at("cases")) {
    if (row.at("kind") != "regression") continue;
    auto state = row.at("seed").get<std::uint32_t>();
    const auto next = [&state] {
      state = state * 1664525u + 1013904223u;
      return state >> 8;
    };
    Numbers gold;
    Numbers predicted;
    for (std::int64_t i = 0; i < row.at("n").get<std::int64_t>(); ++i) {
      const std::uint32_t a = next();
      const std::uint32_t b = next();
      gold.push_back(static_cast<double>(a % 26) / 5.0);
      predicted.push_back(gold.back() * 0.5 + static_cast<double>(b % 1000) / 250.0);
    }
    REQUIRE(Numbers(predicted.begin(), predicted.begin() + 4) == numbers(row.at("first_4_pred")));
    const double tolerance = row.at("tolerance");
    CHECK(*pearson(gold, predicted) ==
          Approx(row.at("pearson").at("value").get<double>()).margin(tolerance).epsilon(0));
    CHECK(*spearman(gold, predicted) ==
          Approx(row.at("spearman").at("value").get<double>()).margin(tolerance).epsilon(0));
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_big numbers", ran);
}

TEST_CASE("correlations refuse columns with different lengths or values that are not finite",
          "[metrics]") {
  const Numbers two = {1, 2};
  const Numbers three = {1, 2, 3};
  CHECK_THROWS_WITH(pearson(two, three), "2 and 3 numbers: the counts must be equal");
  CHECK_THROWS_WITH(spearman(Numbers{}, Numbers{}), "no pairs of numbers: at least one is needed");
  CHECK_THROWS_WITH(pearson(three, Numbers{1, NAN, 2}),
                    "second number nan of element 1 is not finite");
  CHECK_THROWS_WITH(spearman(Numbers{1, 2, -INFINITY}, three),
                    "first number -inf of element 2 is not finite");
}

TEST_CASE("correlations refuse the golden inputs marked as refused", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  for (const auto& row : read_json(*folder / "glue_refused.json")) {
    if (row.at("metrics") == "classification") continue;
    INFO(row.at("name").get<std::string>());
    const Numbers gold = numbers(row.at("gold"));
    const Numbers predicted = numbers(row.at("pred"));
    CHECK_THROWS_AS(pearson(gold, predicted), std::invalid_argument);
    CHECK_THROWS_AS(spearman(gold, predicted), std::invalid_argument);
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_refused numbers", ran);
}

TEST_CASE("correlations do not depend on the order of pairs", "[metrics]") {
  for (const std::size_t n : {7u, 1000u, 5000u}) {
    const Columns columns = random_columns(n, 11);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::mt19937 random(5);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::shuffle(order.begin(), order.end(), random);
      Columns other;
      for (const std::size_t i : order) {
        other.x.push_back(columns.x[i]);
        other.y.push_back(columns.y[i]);
      }
      CHECK(*pearson(other.x, other.y) == *pearson(columns.x, columns.y));
      CHECK(*spearman(other.x, other.y) == *spearman(columns.x, columns.y));
    }
  }
}

TEST_CASE("Pearson does not depend on shifts or scales of a column, except on the scale's sign",
          "[metrics]") {
  const Columns columns = random_columns(300, 2);
  const double r = *pearson(columns.x, columns.y);
  for (const double scale : {3.7, 1e-200, 1e200, -0.25}) {
    for (const double shift : {0.0, -12.5, 1e3}) {
      Numbers y = columns.y;
      for (double& value : y) value = value * scale + shift * std::fabs(scale);
      CHECK(*pearson(columns.x, y) == Approx(scale > 0 ? r : -r).margin(1e-13).epsilon(0));
    }
  }
  // Scaling by a power of two is exact.
  Numbers halved = columns.y;
  for (double& value : halved) value *= 0.5;
  CHECK(*pearson(columns.x, halved) == r);
  CHECK(*pearson(columns.y, columns.x) == r);
}

TEST_CASE("an increasing map of a column does not change Spearman", "[metrics]") {
  const Columns columns = random_columns(4000, 4);
  Numbers mapped = columns.y;
  for (double& value : mapped) value = std::exp(value);
  CHECK(*spearman(columns.x, mapped) == *spearman(columns.x, columns.y));
}

TEST_CASE("a column correlates perfectly with itself, and a constant one has no correlation",
          "[metrics]") {
  const Columns columns = random_columns(3000, 9);
  CHECK(*pearson(columns.x, columns.x) == 1.0);
  CHECK(*spearman(columns.x, columns.x) == 1.0);
  const Numbers constant(3000, 0.1);
  CHECK(!pearson(columns.x, constant));
  CHECK(!spearman(constant, columns.y));
  CHECK(!pearson(Numbers{1}, Numbers{2}));
  CHECK(!spearman(Numbers{1}, Numbers{2}));
}

TEST_CASE("correlations work at the limits of double's range", "[metrics]") {
  const Numbers x = {-1.7e308, 1.7e308, 0};
  const Numbers y = {5e-324, 1.5e-323, 1e-323};
  CHECK(*pearson(x, y) == Approx(1.0));
  CHECK(*spearman(x, y) == 1.0);
}

TEST_CASE("ties share their average rank, as do 0.0 and -0.0", "[metrics]") {
  CHECK(average_ranks(Numbers{10, -3, 10, 7}) == Numbers{3.5, 1, 3.5, 2});
  CHECK(average_ranks(Numbers{0.0, -0.0, 1}) == Numbers{1.5, 1.5, 3});
  CHECK(average_ranks(Numbers{}).empty());
}

TEST_CASE("ranks of many numbers equal those of a plain sort", "[metrics]") {
  std::mt19937 random(8);
  const auto check = [](const Numbers& values) {
    Numbers sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const Numbers ranks = average_ranks(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), values[i]);
      const auto first = static_cast<double>(low - sorted.begin());
      const auto last = static_cast<double>(high - sorted.begin());
      REQUIRE(ranks[i] == (first + last + 1) / 2);
    }
  };
  // Short and long columns with few and many distinct values.
  for (const std::size_t n : {100u, 5000u, 200000u}) {
    for (const unsigned different : {1u, 20u, 3000u, 150000u}) {
      for (const double step : {1e-7, 1.0, 1e9}) {
        Numbers values(n);
        for (double& value : values) {
          value = step * (static_cast<double>(random() % different) - different / 2);
        }
        check(values);
      }
    }
  }
  // Values that differ only in their lowest bits, together with a distant one.
  for (const double far : {1.0, -1e300, 1e300}) {
    Numbers values(30000, far);
    for (std::size_t i = 1; i < values.size(); ++i) {
      values[i] = 1.0 + static_cast<double>(random() % 20000) * 0x1p-52;
    }
    check(values);
  }
}
