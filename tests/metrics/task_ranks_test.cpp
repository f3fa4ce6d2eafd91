#include "metrics/task_ranks.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::number;
using petlab::testing::numbers;
using petlab::testing::read_json;

namespace {

using Groups = std::vector<std::vector<std::size_t>>;

void check_rank_test(const nlohmann::json& expected, const char* statistic,
                     const std::optional<RankTest>& test) {
  if (expected.is_null() || expected.at("p") == "undefined") {
    CHECK_FALSE(test);
    return;
  }
  REQUIRE(test);
  if (std::isinf(number(expected.at(statistic)))) {
    CHECK(std::isinf(test->statistic));
  } else {
    CHECK(test->statistic == Approx(number(expected.at(statistic))).epsilon(1e-9));
  }
  CHECK(test->p == Approx(number(expected.at("p"))).epsilon(1e-9));
}

}  // namespace

TEST_CASE("ranks over tasks match scipy, autorank and scikit-posthocs", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  const auto file = read_json(*folder / "ranks.json");
  int ran = 0;
  for (const auto& row : file.at("cases")) {
    INFO(row.at("name").get<std::string>());
    std::vector<std::vector<double>> scores;
    for (const auto& task : row.at("scores")) scores.push_back(numbers(task));
    const VariantRanks ranks = rank_variants(scores);
    CHECK(ranks.tasks == row.at("tasks").get<std::int64_t>());
    const std::vector<double> averages = numbers(row.at("average_ranks"));
    REQUIRE(ranks.average_ranks.size() == averages.size());
    for (std::size_t i = 0; i < averages.size(); ++i) {
      CHECK(ranks.average_ranks[i] == Approx(averages[i]).epsilon(1e-12));
    }
    check_rank_test(row.at("friedman"), "chi2", ranks.friedman);
    check_rank_test(row.value("iman_davenport", nlohmann::json()), "F", ranks.iman_davenport);
    const auto& nemenyi = row.at("nemenyi");
    const auto& wilcoxon = row.at("wilcoxon_holm");
    CHECK(ranks.critical_difference == Approx(number(nemenyi.at("cd"))).epsilon(1e-6));
    CHECK(ranks.nemenyi_groups == nemenyi.at("groups").get<Groups>());
    CHECK(ranks.wilcoxon_groups == wilcoxon.at("cliques").get<Groups>());
    CHECK(ranks.pairs.size() == averages.size() * (averages.size() - 1) / 2);
    for (const VariantPair& pair : ranks.pairs) {
      const std::string key = std::to_string(pair.first) + "-" + std::to_string(pair.second);
      INFO(key);
      CHECK(pair.nemenyi_p == Approx(number(nemenyi.at("p").at(key))).margin(1e-5));
      CHECK(pair.wilcoxon_p == Approx(number(wilcoxon.at("p").at(key))).epsilon(1e-9));
      CHECK(pair.holm_p == Approx(number(wilcoxon.at("holm").at(key))).epsilon(1e-9));
    }
    ran++;
  }
  for (const auto& [variants, q] : file.at("q_table").items()) {
    // With 6 tasks the formula is sqrt(k (k + 1)) / 6.
    const double k = std::stod(variants);
    CHECK(critical_difference(std::stoi(variants), 6) * 6 / std::sqrt(k * (k + 1)) ==
          Approx(number(q)).epsilon(1e-6));
    ran++;
  }
  petlab::testing::golden_ran("statistics/ranks", ran);
}

TEST_CASE("scores that differ only in their last bits tie", "[metrics]") {
  const double sum = 0.1 + 0.2;
  REQUIRE(sum != 0.3);
  const std::vector<std::vector<double>> scores(6, {0.3, sum, 0.1});
  const VariantRanks ranks = rank_variants(scores);
  CHECK(ranks.average_ranks == std::vector<double>{1.5, 1.5, 3});
  CHECK(ranks.pairs[0].wilcoxon_p == 1);
  CHECK(ranks.pairs[0].nemenyi_p == 1);
  CHECK(ranks.pairs[1].wilcoxon_p == Approx(2.0 / 64));
}

TEST_CASE("many variants without differences are one group", "[metrics]") {
  const std::vector<std::vector<double>> scores(4, std::vector<double>(40, 71.5));
  const VariantRanks ranks = rank_variants(scores);
  REQUIRE(ranks.nemenyi_groups.size() == 1);
  CHECK(ranks.nemenyi_groups.front().size() == 40);
  CHECK(ranks.wilcoxon_groups == ranks.nemenyi_groups);
  CHECK_FALSE(ranks.friedman);
}

TEST_CASE("a single task ranks variants, but proves no difference", "[metrics]") {
  const VariantRanks ranks = rank_variants(std::vector<std::vector<double>>{{70, 80, 75}});
  CHECK(ranks.average_ranks == std::vector<double>{3, 1, 2});
  CHECK(ranks.friedman);
  CHECK_FALSE(ranks.iman_davenport);
  CHECK(ranks.nemenyi_groups == Groups{{0, 1, 2}});
  CHECK(ranks.wilcoxon_groups == Groups{{0, 1, 2}});
}

TEST_CASE("ranks refuse an incomplete table of scores", "[metrics]") {
  using Scores = std::vector<std::vector<double>>;
  CHECK_THROWS_WITH(rank_variants(Scores{}), "no tasks: ranks need at least 1");
  CHECK_THROWS_WITH(rank_variants(Scores{{1}}), "1 variants: ranks need at least 2");
  CHECK_THROWS_WITH(rank_variants(Scores{{1, 2}, {1}}), "task 1 has 1 scores, task 0 has 2");
  CHECK_THROWS_WITH(rank_variants(Scores{{1, 2}}, 0), "the level is 0, must be between 0 and 1");
  CHECK_THROWS_AS(rank_variants(Scores{{1, NAN}}), std::invalid_argument);
}
