#include "metrics/seed_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "metrics/paired_comparison.h"
#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::number;
using petlab::testing::numbers;
using petlab::testing::read_json;

namespace {

using Numbers = std::vector<double>;

// A relative tolerance. `absolute` allows for rounding of values around 0.
Approx near(const nlohmann::json& expected, double relative, double absolute = 0) {
  return Approx(number(expected)).epsilon(relative).margin(absolute);
}

void check(const nlohmann::json& expected, std::optional<double> value, double relative,
           double absolute = 0) {
  if (expected == "undefined") {
    CHECK(!value);
    return;
  }
  REQUIRE(value);
  CHECK(*value == near(expected, relative, absolute));
}

void check_test(const nlohmann::json& expected, std::optional<TTest> test) {
  if (expected.value("library", "") == "undefined") {
    CHECK(!test);
    return;
  }
  REQUIRE(test);
  CHECK(test->t == near(expected.at("t"), 1e-10));
  CHECK(test->degrees_of_freedom == near(expected.at("df"), 1e-10));
  CHECK(test->p == near(expected.at("p"), 1e-10));
}

}  // namespace

TEST_CASE("statistics over seeds match exact arithmetic", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "seeds.json");
  for (const auto& row : file.at("vectors")) {
    INFO(row.at("name").get<std::string>());
    const Numbers values = numbers(row.at("values"));
    check(row.at("mean"), mean(values), 1e-12);
    check(row.at("median"), median(values), 1e-12);
    check(row.at("min"), minimum(values), 0);
    check(row.at("max"), maximum(values), 0);
    check(row.at("sd"), sample_deviation(values), 1e-12);
    check(row.at("se"), standard_error(values), 1e-12);
    const auto interval = student_interval(values);
    if (row.at("ci95") == "undefined") {
      CHECK(!interval);
    } else {
      REQUIRE(interval);
      // An interval's end is a difference; its error is relative to the two numbers.
      const double size = std::fabs(*mean(values)) + interval->high - interval->low;
      CHECK(interval->low == near(row.at("ci95").at(0), 0, 1e-10 * size));
      CHECK(interval->high == near(row.at("ci95").at(1), 0, 1e-10 * size));
    }
    if (row.contains("bootstrap95")) {
      const auto& expected = row.at("bootstrap95");
      const auto bootstrap = bootstrap_interval(values);
      if (expected == "undefined") {
        CHECK(!bootstrap);
      } else {
        REQUIRE(bootstrap);
        CHECK(bootstrap->low >= number(expected.at("accept_low_between").at(0)) - 1e-9);
        CHECK(bootstrap->low <= number(expected.at("accept_low_between").at(1)) + 1e-9);
        CHECK(bootstrap->high >= number(expected.at("accept_high_between").at(0)) - 1e-9);
        CHECK(bootstrap->high <= number(expected.at("accept_high_between").at(1)) + 1e-9);
        // For up to ten values the bootstrap is exact.
        if (values.size() <= kExactBootstrapSize) {
          CHECK(bootstrap->low == near(expected.at("exact_quantiles").at(0), 1e-12));
          CHECK(bootstrap->high == near(expected.at("exact_quantiles").at(1), 1e-12));
        }
      }
    }
    ran++;
  }
  petlab::testing::golden_ran("metrics/seeds vectors", ran);
}

TEST_CASE("tests over seeds match scipy and enumeration", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "seeds.json");
  for (const auto& row : file.at("pairs")) {
    INFO(row.at("name").get<std::string>());
    const Numbers a = numbers(row.at("a"));
    const Numbers b = numbers(row.at("b"));
    check_test(row.at("welch_t"), welch_t_test(a, b));
    if (row.at("paired_t").value("library", "") == "must be refused") {
      CHECK_THROWS_AS(paired_t_test(a, b), std::invalid_argument);
      CHECK_THROWS_AS(wilcoxon_signed_rank(a, b), std::invalid_argument);
    } else {
      check_test(row.at("paired_t"), paired_t_test(a, b));
      const auto& expected = row.at("wilcoxon_enumerated");
      const auto test = wilcoxon_signed_rank(a, b);
      if (expected.at("nonzero") == 0) {
        CHECK(!test);
      } else {
        REQUIRE(test);
        CHECK(test->nonzero == expected.at("nonzero").get<std::int64_t>());
        CHECK(test->w_plus == number(expected.at("w_plus")));
        CHECK(test->w_minus == number(expected.at("w_minus")));
        CHECK(test->p == near(expected.at("p_two_sided"), 1e-12));
      }
    }
    ran++;
  }
  petlab::testing::golden_ran("metrics/seeds pairs", ran);
}

TEST_CASE("paired tests match scipy, and their family correction matches statsmodels",
          "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  const auto file = read_json(*folder / "paired_t.json");
  int ran = 0;
  for (const auto& family : file.at("families")) {
    INFO(family.at("name").get<std::string>());
    std::vector<PairedComparison> comparisons;
    for (const auto& expected : family.at("comparisons")) {
      ScoresByPair a;
      ScoresByPair b;
      for (std::size_t i = 0; i < expected.at("a").size(); ++i) {
        const double values[] = {number(expected.at("a")[i]), number(expected.at("b")[i])};
        // The reference omits such pairs. In petlab they would make the comparison undefined.
        if (!std::isfinite(values[0]) || !std::isfinite(values[1])) continue;
        a[std::to_string(i)] = values[0];
        b[std::to_string(i)] = values[1];
      }
      const double relative = expected.value("delicate", false) ? 1e-5 : 1e-9;
      const PairedComparison& one = comparisons.emplace_back(compare(a, b));
      CHECK(one.pairs == expected.at("n").get<std::int64_t>());
      if (one.pairs < kFewestPairs) {
        CHECK_FALSE(one.p);
        continue;
      }
      check(expected.at("p"), one.p, relative);
      ran++;
    }
    if (std::any_of(comparisons.begin(), comparisons.end(),
                    [](const auto& one) { return one.pairs == kFewestPairs - 1; })) {
      continue;  // the reference includes tests with too few pairs; petlab does not
    }
    std::vector<PairedComparison*> all;
    for (PairedComparison& one : comparisons) all.push_back(&one);
    adjust(all);
    for (std::size_t i = 0; i < comparisons.size(); ++i) {
      if (!comparisons[i].p) continue;
      const auto& expected = family.at("comparisons")[i];
      check(expected.at("holm"), comparisons[i].adjusted_p,
            expected.value("delicate", false) ? 1e-5 : 1e-9);
    }
  }
  for (const auto& row : file.at("holm")) {
    const Numbers adjusted = holm_adjusted(numbers(row.at("p")));
    const Numbers expected = numbers(row.at("holm"));
    REQUIRE(adjusted.size() == expected.size());
    for (std::size_t i = 0; i < adjusted.size(); ++i) {
      CHECK(adjusted[i] == Approx(expected[i]).epsilon(1e-9));
    }
    ran++;
  }
  petlab::testing::golden_ran("statistics/paired_t", ran);
}

TEST_CASE("the signed-rank test matches exact counting on decimals", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "wilcoxon.json");
  for (const auto& row : file.at("wilcoxon")) {
    INFO(row.at("name").get<std::string>());
    const Numbers d = numbers(row.at("d"));
    const auto test = wilcoxon_signed_rank(d, Numbers(d.size(), 0));
    const auto& expected = row.at("exact");
    REQUIRE(test.has_value() == (expected != "undefined"));
    ran++;
    if (!test) continue;
    CHECK(test->nonzero == expected.at("n_used").get<std::int64_t>());
    CHECK(test->w_plus == number(expected.at("w_plus")));
    CHECK(test->w_minus == number(expected.at("w_minus")));
    CHECK(test->p == near(expected.at("p"), 1e-9));
  }
  petlab::testing::golden_ran("statistics/wilcoxon", ran);
}

TEST_CASE("differences that are equal as decimals tie in the signed-rank test", "[metrics]") {
  // As doubles, 0.3 - 0.2 < 0.2 - 0.1 and 0.1 + 0.2 - 0.3 > 0.
  const auto test = wilcoxon_signed_rank(Numbers{0.3, 0.1, 0.1 + 0.2}, Numbers{0.2, 0.2, 0.3});
  REQUIRE(test);
  CHECK(test->nonzero == 2);
  CHECK(test->w_plus == 1.5);
  CHECK(test->p == 1);
}

TEST_CASE("Student's t matches scipy far into its tails", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "seeds.json");
  for (const auto& row : file.at("student_t")) {
    const double df = row.at("df");
    CHECK(student_t_quantile(0.975, df) == near(row.at("t_0.975"), 1e-10));
    for (const double t : {1.0, 2.5, 12.706, 100.0}) {
      char key[40];
      std::snprintf(key, sizeof key, "p_two_sided_at_%g", t);
      CHECK(student_t_two_sided_p(t, df) == near(row.at(key), 1e-10));
      CHECK(student_t_two_sided_p(-t, df) == student_t_two_sided_p(t, df));
    }
    ran++;
  }
  petlab::testing::golden_ran("metrics/seeds student_t", ran);
}

TEST_CASE("statistics of too few seeds are undefined and never 0", "[metrics]") {
  const Numbers none;
  const Numbers one = {86.5};
  CHECK(!mean(none));
  CHECK(!median(none));
  CHECK(!minimum(none));
  CHECK(!maximum(none));
  CHECK(*mean(one) == 86.5);
  CHECK(!sample_deviation(one));
  CHECK(!standard_error(one));
  CHECK(!student_interval(one));
  CHECK(!bootstrap_interval(one));
  CHECK(!paired_t_test(one, one));
  CHECK(!welch_t_test(one, Numbers{1, 2}));
  CHECK(!wilcoxon_signed_rank(none, none));
  // Without spread, a test is undefined.
  CHECK(!welch_t_test(Numbers{1, 1}, Numbers{2, 2}));
  CHECK(!paired_t_test(Numbers{1, 2}, Numbers{2, 3}));
  // These differences are equal as decimals but not as doubles.
  CHECK(!paired_t_test(Numbers{0.2, 0.3, 0.4}, Numbers{0.1, 0.2, 0.3}));
  CHECK(paired_t_test(Numbers{0.2, 0.3, 0.4000001}, Numbers{0.1, 0.2, 0.3}));
}

TEST_CASE("statistics refuse values that are not finite and pairs with a missing value",
          "[metrics]") {
  CHECK_THROWS_WITH(mean(Numbers{1, NAN}), "value nan of element 1 is not finite");
  CHECK_THROWS_WITH(paired_t_test(Numbers{1, 2}, Numbers{1}),
                    "2 and 1 values: a paired test needs equal numbers");
  CHECK_THROWS_WITH(student_interval(Numbers{1, 2}, 1.0),
                    "the confidence is 1, must be between 0 and 1");
  CHECK_THROWS_WITH(bootstrap_interval(Numbers{1, 2}, 0.95, 0),
                    "resamples is 0, must be at least 1");
  CHECK_THROWS_WITH(wilcoxon_signed_rank(Numbers(501, 1.0), Numbers(501, 2.0)),
                    "501 pairs: the exact signed-rank test takes at most 500");
}

TEST_CASE("a bootstrap of many values is random, but the same each time", "[metrics]") {
  Numbers values;
  for (int i = 0; i < 30; ++i) values.push_back(std::sin(i));
  const auto first = bootstrap_interval(values);
  REQUIRE(first);
  CHECK(*first == *bootstrap_interval(values));
  CHECK(!(*first == *bootstrap_interval(values, 0.95, 10000, 7)));
  // Close to the normal approximation's interval.
  CHECK(first->low == Approx(*mean(values) - 1.96 * *standard_error(values)).margin(0.04));
  CHECK(first->high == Approx(*mean(values) + 1.96 * *standard_error(values)).margin(0.04));
}

TEST_CASE("the signed-rank test of many pairs is close to its normal approximation", "[metrics]") {
  Numbers a;
  Numbers b;
  for (int i = 1; i <= 200; ++i) {
    a.push_back(0);
    b.push_back(i % 5 < 2 ? i : -i);
  }
  const auto test = wilcoxon_signed_rank(a, b);
  REQUIRE(test);
  const double n = 200;
  const double sd = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  const double z = (test->w_plus - n * (n + 1) / 4) / sd;
  CHECK(test->p == Approx(std::erfc(std::fabs(z) / std::sqrt(2.0))).epsilon(0.02));
  CHECK(test->w_plus + test->w_minus == n * (n + 1) / 2);
}

TEST_CASE("every statistic in reports is in the table", "[metrics]") {
  const Numbers values = {1, 2, 6};
  CHECK(*find_seed_statistic("n")->function(values) == 3);
  CHECK(*find_seed_statistic("mean")->function(values) == 3);
  CHECK(*find_seed_statistic("median")->function(values) == 2);
  CHECK(*find_seed_statistic("sd")->function(values) == Approx(std::sqrt(7.0)));
  CHECK(find_seed_statistic("ci95_low")->function(values) == student_interval(values)->low);
  CHECK(find_seed_statistic("mode") == nullptr);
  for (const SeedStatistic& row : seed_statistics()) CHECK(!row.help.empty());
}

TEST_CASE("Holm's correction multiplies each p value by the number of tests that remain",
          "[metrics]") {
  // R: p.adjust(c(0.04, 0.01, 0.03, 0.5), "holm")
  CHECK(holm_adjusted(std::vector<double>{0.04, 0.01, 0.03, 0.5}) ==
        std::vector<double>{0.09, 0.04, 0.09, 0.5});
  CHECK(holm_adjusted(std::vector<double>{0.9, 0.8}) == std::vector<double>{1, 1});
  CHECK(holm_adjusted({}).empty());
  CHECK_THROWS_AS(holm_adjusted(std::vector<double>{0.2, 1.5}), std::invalid_argument);
}
