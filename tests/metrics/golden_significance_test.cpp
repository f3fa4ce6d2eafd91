#include <cstdio>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/numpy_random.h"
#include "metrics/significance.h"
#include "tests/metrics/golden_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using namespace petlab::testing;
using nlohmann::json;

namespace {

SystemStatistics statistics_of(const std::filesystem::path& folder, const std::string& name,
                               const TextMetric& metric) {
  MemoryCorpus corpus = golden_corpus(folder, name);
  return collect_statistics(corpus, metric, 2);
}

void check_random_numbers(const json& wanted) {
  const std::uint64_t segments = wanted.at("segments");
  NumpyRandom bootstrap(12345);
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> last;
  std::uint64_t sum = 0;
  for (std::uint64_t b = 0; b < 1000; ++b) {
    for (std::uint64_t i = 0; i < segments; ++i) {
      const std::uint32_t index = bootstrap.below(segments);
      sum += index;
      if (b == 0 && i < 24) first.push_back(index);
      if (b == 999 && i + 8 >= segments) last.push_back(index);
    }
  }
  CHECK(first == wanted.at("bootstrap_first_row_first_24").get<std::vector<std::uint32_t>>());
  CHECK(last == wanted.at("bootstrap_last_row_last_8").get<std::vector<std::uint32_t>>());
  CHECK(sum == wanted.at("bootstrap_sum_of_all"));
  NumpyRandom randomisation(12345);
  std::string bits;
  std::int64_t ones = 0;
  for (std::uint64_t i = 0; i < 10000 * segments; ++i) {
    const bool bit = randomisation.next_bool();
    ones += bit ? 1 : 0;
    if (i < 64) bits += bit ? '1' : '0';
  }
  CHECK(bits == wanted.at("randomisation_first_row_first_64").get<std::string>());
  CHECK(ones == wanted.at("randomisation_ones"));
}

}  // namespace

// numpy's generator is reproduced, so p values match exactly. sacrebleu sums in float32, which
// changes the fifth decimal of the bootstrap's means.
TEST_CASE("significance tests match sacrebleu draw by draw", "[metrics][golden]") {
  const auto folder = golden("metrics");
  for_each_case("significance", [&](const json& row) {
    const std::string test = row.at("test");
    if (test == "rng") {
      check_random_numbers(row);
      return;
    }
    const bool bootstrap = test == "paired bootstrap";
    ResamplingOptions options;
    options.samples = row.at("n");
    options.seed = row.at("seed");
    options.threads = 2;
    for (const auto& [metric_name, systems] : row.at("results").items()) {
      const std::unique_ptr<TextMetric> metric =
          metric_name == "BLEU" ? std::unique_ptr<TextMetric>(std::make_unique<Bleu>())
                                : std::make_unique<Chrf>();
      REQUIRE(metric->name() == metric_name);
      const std::string baseline_name = row.at("baseline");
      const SystemStatistics baseline = statistics_of(*folder, baseline_name, *metric);
      SignatureContext context;
      context.references = baseline.references;
      context.seed = options.seed;
      (bootstrap ? context.bootstrap : context.randomisation) = options.samples;
      CHECK(metric->signature(context).format() ==
            row.at("signatures").at(metric_name).get<std::string>());
      for (const auto& [name, wanted] : systems.items()) {
        INFO(test << " " << metric_name << " " << name);
        const bool copy = name == "copy_of_baseline" || name == baseline_name;
        const SystemStatistics system = copy ? baseline : statistics_of(*folder, name, *metric);
        const PairedResult found = bootstrap
                                       ? paired_bootstrap(*metric, baseline, system, options)
                                       : paired_randomisation(*metric, baseline, system, options);
        CHECK(near(found.score, wanted.at("score"), 1e-9));
        CHECK(found.identical == copy);
        CHECK(found.p_value.has_value() == !copy);
        if (!copy) CHECK(near(*found.p_value, wanted.at("p_value"), 1e-12));
        CHECK(found.interval.has_value() == bootstrap);
        if (bootstrap) {
          CHECK(std::abs(found.interval->mean - wanted.at("mean").get<double>()) < 1e-4);
          CHECK(std::abs(found.interval->half_width - wanted.at("ci_half_width").get<double>()) <
                1e-4);
        }
      }
    }
  });
}
