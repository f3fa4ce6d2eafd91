#include "metrics/power.h"

#include <cmath>

#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::number;
using petlab::testing::read_json;

TEST_CASE("the pairs needed for a power match numerical integration", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  const auto file = read_json(*folder / "power.json");
  int ran = 0;
  for (const auto& row : file.at("needed")) {
    INFO(row.dump());
    const double mean_difference = row.at("mean_difference");
    const double deviation = row.at("sd");
    const double alpha = row.at("alpha");
    const PairsNeeded needed = pairs_needed(mean_difference, deviation, alpha, row.at("power"));
    ran++;
    if (row.at("pairs") == "undefined") {
      CHECK(needed.answer == PairsNeeded::Answer::unknown);
      continue;
    }
    if (row.at("pairs") == "never") {
      CHECK(needed.answer == PairsNeeded::Answer::never);
      continue;
    }
    CHECK(needed.answer == PairsNeeded::Answer::pairs);
    CHECK(needed.pairs == row.at("pairs").get<std::int64_t>());
    const double effect = mean_difference / deviation;
    CHECK(paired_t_power(needed.pairs, effect, alpha) ==
          Approx(number(row.at("power_at_pairs"))).margin(1e-7));
    if (row.at("power_at_one_fewer") != "undefined") {
      CHECK(paired_t_power(needed.pairs - 1, effect, alpha) ==
            Approx(number(row.at("power_at_one_fewer"))).margin(1e-7));
    }
  }
  for (const auto& row : file.at("power")) {
    INFO(row.dump());
    CHECK(paired_t_power(row.at("n"), row.at("effect"), row.at("alpha")) ==
          Approx(number(row.at("power"))).margin(1e-7));
    ran++;
  }
  petlab::testing::golden_ran("statistics/power", ran);
}

TEST_CASE("power rises from alpha to 1 with the pairs, and with the effect", "[metrics]") {
  for (const double effect : {1e-6, 0.01, 0.3, 1.0, 3.0, 30.0, 1e4, 1e10}) {
    INFO(effect);
    double previous = 0.05;
    for (const std::int64_t pairs : {2, 3, 5, 10, 100, 1'000, 1'000'000}) {
      INFO(pairs);
      const double power = paired_t_power(pairs, effect);
      CHECK(power >= previous - 1e-7);
      CHECK(power <= 1);
      CHECK(paired_t_power(pairs, -effect) == power);
      previous = power;
    }
  }
  CHECK(paired_t_power(5, 0, 0.01) == Approx(0.01));
}

TEST_CASE("the number of seeds needed is described in words", "[metrics]") {
  const auto words = [](std::int64_t needed, std::int64_t pairs) {
    return more_seeds({.answer = PairsNeeded::Answer::pairs, .pairs = needed}, pairs);
  };
  CHECK(words(9, 5) == "about 4 more seeds");
  CHECK(words(6, 5) == "about 1 more seed");
  CHECK(words(5, 5) == "no more seeds");
  CHECK(words(4, 5) == "no more seeds");
  // Two seeds are never enough for a claim.
  CHECK(words(2, 2) == "about 1 more seed");
  CHECK(words(99, 0) == "about 99 more seeds");
  CHECK(words(787, 5) == "about 780 more seeds");
  CHECK(words(28'258, 3) == "about 28000 more seeds");
  CHECK(more_seeds({.answer = PairsNeeded::Answer::never}, 5) == "no number of seeds");
  CHECK(more_seeds({.answer = PairsNeeded::Answer::unknown}, 5) == "unknown");
}

TEST_CASE("without a difference no number of pairs suffices, and without spread it is unknown",
          "[metrics]") {
  CHECK(pairs_needed(0, 1).answer == PairsNeeded::Answer::never);
  CHECK(pairs_needed(0, 0).answer == PairsNeeded::Answer::never);
  CHECK(pairs_needed(0.001, 1).answer == PairsNeeded::Answer::never);
  CHECK(pairs_needed(0.5, 0).answer == PairsNeeded::Answer::unknown);
  CHECK(pairs_needed(1e300, 1e-300).answer == PairsNeeded::Answer::unknown);
  CHECK(pairs_needed(0.003, 1).pairs > 800'000);
}

TEST_CASE("power refuses invalid levels, effects and numbers of pairs", "[metrics]") {
  CHECK_THROWS_WITH(paired_t_power(1, 0.5), "1 pairs: at least 2 needed");
  CHECK_THROWS_WITH(paired_t_power(3, NAN), "the effect is nan, must be finite");
  CHECK_THROWS_WITH(paired_t_power(3, 0.5, 1), "alpha is 1, must be between 0 and 1");
  CHECK_THROWS_WITH(pairs_needed(1, 1, 0.05, 0), "the power is 0, must be between 0 and 1");
  CHECK_THROWS_WITH(pairs_needed(1, -1),
                    "the mean difference is 1 and the deviation -1; both must be finite, and the "
                    "deviation at least 0");
}
