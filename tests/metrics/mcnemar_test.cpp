#include "metrics/mcnemar.h"

#include <cmath>
#include <stdexcept>

#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::number;
using petlab::testing::read_json;

namespace {

McNemarTest test_of_table(const nlohmann::json& table) {
  return mcnemar(table.at(0).at(1).get<std::int64_t>(), table.at(1).at(0).get<std::int64_t>());
}

}  // namespace

TEST_CASE("McNemar's test matches exact integer arithmetic", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "mcnemar.json");
  for (const auto& row : file.at("cases")) {
    INFO(row.at("table").dump());
    const McNemarTest test = test_of_table(row.at("table"));
    CHECK(test.only_a == row.at("b").get<std::int64_t>());
    CHECK(test.only_b == row.at("c").get<std::int64_t>());
    // Smaller doubles have fewer digits.
    if (number(row.at("log10_exact")) < -307) {
      CHECK(test.p < 1e-300);
    } else {
      CHECK(test.p == Approx(number(row.at("exact"))).epsilon(1e-9));
      CHECK(test.mid_p == Approx(number(row.at("midp"))).epsilon(1e-9));
    }
    const McNemarTest swapped = mcnemar(test.only_b, test.only_a);
    CHECK(swapped.p == test.p);
    CHECK(swapped.mid_p == test.mid_p);
    ran++;
  }
  petlab::testing::golden_ran("statistics/mcnemar", ran);
}

TEST_CASE("McNemar's test detects a difference that an unpaired z test misses",
          "[metrics][golden]") {
  const auto folder = petlab::testing::golden("statistics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "unpaired_z.json");
  for (const auto& row : file.at("cases")) {
    INFO(row.at("table").dump());
    const McNemarTest test = test_of_table(row.at("table"));
    CHECK(test.p == Approx(number(row.at("mcnemar_exact"))).epsilon(1e-9));
    CHECK(test.mid_p == Approx(number(row.at("mcnemar_midp"))).epsilon(1e-9));
    // The two-proportion z test with pooled variance ignores the pairs.
    const double n = row.at("examples");
    const double a = row.at("accuracy_a");
    const double b = row.at("accuracy_b");
    const double pooled = (a + b) / 2;
    const double z = (a - b) / std::sqrt(2 * pooled * (1 - pooled) / n);
    const double unpaired_p = std::erfc(std::fabs(z) / std::sqrt(2.0));
    CHECK(unpaired_p == Approx(number(row.at("unpaired_p"))).epsilon(1e-9));
    CHECK(unpaired_p > 0.05);
    CHECK(test.p < 0.01);
    ran++;
  }
  petlab::testing::golden_ran("statistics/unpaired_z", ran);
}

TEST_CASE("McNemar's test of five discordant examples matches a hand calculation", "[metrics]") {
  // For five coins, P(X <= 1) = 6/32 and P(X <= 0) = 1/32.
  CHECK(mcnemar(4, 1).p == Approx(12.0 / 32));
  CHECK(mcnemar(4, 1).mid_p == Approx(7.0 / 32));
  CHECK(mcnemar(0, 5).p == Approx(2.0 / 32));
  CHECK(mcnemar(0, 0).p == 1);
  CHECK(mcnemar(7, 7).mid_p == 1);
  CHECK(mcnemar(0, 100000).p == 0);
  CHECK_THROWS_WITH(mcnemar(-1, 2),
                    "McNemar's test got the counts -1 and 2; both must be at least 0");
}
