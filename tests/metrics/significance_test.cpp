#include "metrics/significance.h"

#include <random>

#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "tests/support/catch.h"

using namespace petlab::metrics;

namespace {

double fraction(std::mt19937& random) {
  return static_cast<double>(random() % 1000) / static_cast<double>(1 + random() % 97);
}

SystemStatistics rouge_statistics(std::mt19937& random, std::size_t segments) {
  SystemStatistics system;
  system.columns = 4;
  for (std::size_t i = 0; i < segments; ++i) {
    const double f = fraction(random) / 1000;
    system.values.insert(system.values.end(), {f, f / 3, f / 7, 1.0});
  }
  return system;
}

// Edits are integers; the mean length of three references is not.
SystemStatistics ter_statistics(std::mt19937& random, std::size_t segments) {
  SystemStatistics system;
  system.columns = 2;
  for (std::size_t i = 0; i < segments; ++i) {
    system.values.push_back(static_cast<double>(random() % 30));
    system.values.push_back(static_cast<double>(40 + random() % 30) / 3);
  }
  return system;
}

}  // namespace

// Swapping systems either keeps the two scores or exchanges them. No random difference is greater
// than the observed one, so only the observed one counts.
TEST_CASE("if one segment differs every trial of the randomisation test is a tie", "[metrics]") {
  std::mt19937 random(1);
  ResamplingOptions options;
  options.samples = 99;
  for (std::size_t changed = 0; changed < 40; ++changed) {
    INFO("segment " << changed);
    const SystemStatistics rouge = rouge_statistics(random, 200);
    SystemStatistics other = rouge;
    other.values[4 * changed + 2] += 0.125 / 3;
    CHECK(paired_randomisation(Rouge({RougeType::rouge1, false}), rouge, other, options).p_value ==
          0.01);
    const SystemStatistics ter = ter_statistics(random, 200);
    other = ter;
    other.values[2 * changed] += 2;
    CHECK(paired_randomisation(Ter(), ter, other, options).p_value == 0.01);
  }
}

TEST_CASE("resampled sums of fractions are exact, like the score's", "[metrics]") {
  SystemStatistics equal;
  equal.columns = 4;
  for (int i = 0; i < 10; ++i) equal.values.insert(equal.values.end(), {0.1, 0.1, 0.1, 1.0});
  const BootstrapInterval interval =
      bootstrap_interval(Rouge({RougeType::rougeL, false}), equal, {.samples = 20});
  CHECK(interval.mean == 0.1);
  CHECK(interval.half_width == 0.0);
}
