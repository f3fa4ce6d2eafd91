// Measures how often confidence intervals contain the true difference, and how often equal systems
// are declared different. Each simulation draws seeds and examples anew, trains systems a and b
// with a few seeds, scores them on a few examples, and compares them as petlab compares kept
// predictions.
//
//   coverage_bench --simulations 1000 --seeds 5 --examples 100
//
// A prediction is right if  level + seed effect + example difficulty + example effect + noise > 0.
// Each system has its own seed and example effects. The true accuracy averages over all seeds and
// examples: a normal probability.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "metrics/crossed_bootstrap.h"
#include "metrics/example_comparison.h"
#include "metrics/seed_statistics.h"

namespace metrics = petlab::metrics;

namespace {

constexpr double kNoise = 0.8;

struct World {
  std::string name;
  double seed_effect = 0;  // standard deviations
  double example_effect = 0;
};

struct Design {
  std::size_t seeds = 5;
  std::size_t examples = 100;
  std::int64_t replicates = 2000;
  double shift = 0;  // added to system a's level
};

// Numbers of simulations.
struct Rates {
  // The interval contains the true difference.
  int interval = 0;  // shown by petlab
  int bca = 0;
  int percentile = 0;
  int two_way = 0;
  int over_seeds = 0;  // Student's t over seeds, which ignores examples
  // A difference is claimed at the 5 % level.
  int claims = 0;  // by petlab
  int bca_claims = 0;
  int claims_over_seeds = 0;
};

class Simulation {
 public:
  Simulation(const World& world, const Design& design, std::uint64_t seed)
      : world_(world), design_(design), random_(seed) {}

  std::vector<metrics::SeedPredictions> draw() {
    const std::size_t n = design_.examples;
    std::vector<metrics::SeedPredictions> seeds(design_.seeds);
    const std::vector<double> difficulty = normals(n, 1);
    const std::vector<std::string> gold(n, "1");
    for (const bool is_a : {true, false}) {
      const std::vector<double> own = normals(n, world_.example_effect);
      const std::vector<double> levels = normals(design_.seeds, world_.seed_effect);
      for (std::size_t s = 0; s < design_.seeds; ++s) {
        metrics::KeptPredictions& kept = is_a ? seeds[s].a : seeds[s].b;
        kept.gold = gold;
        for (std::size_t i = 0; i < n; ++i) {
          const double value = 1 + (is_a ? design_.shift : 0) + levels[s] + own[i] + difficulty[i] +
                               kNoise * normal_(random_);
          kept.predicted.emplace_back(value > 0 ? "1" : "0");
        }
      }
    }
    return seeds;
  }

  double true_difference() const {
    const double spread = std::sqrt(std::pow(world_.seed_effect, 2) +
                                    std::pow(world_.example_effect, 2) + 1 + kNoise * kNoise);
    const boost::math::normal normal(0, spread);
    return boost::math::cdf(normal, 1 + design_.shift) - boost::math::cdf(normal, 1);
  }

 private:
  std::vector<double> normals(std::size_t count, double deviation) {
    std::vector<double> values(count);
    for (double& value : values) value = deviation * normal_(random_);
    return values;
  }

  World world_;
  Design design_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

Rates measure(const World& world, const Design& design, int simulations, std::uint64_t seed) {
  Simulation simulation(world, design, seed);
  const double truth = simulation.true_difference();
  const auto contains = [truth](const metrics::Interval& interval) {
    return interval.low <= truth && truth <= interval.high;
  };
  Rates rates;
  for (int i = 0; i < simulations; ++i) {
    const auto comparison = metrics::compare_examples(
        metrics::metric_named("accuracy"), simulation.draw(), {.replicates = design.replicates});
    const metrics::CrossedBootstrap& bootstrap = comparison.bootstrap.value();
    rates.interval += contains(bootstrap.interval.value());
    rates.bca += bootstrap.both->bca && contains(*bootstrap.both->bca);
    rates.percentile += contains(bootstrap.both->percentile);
    rates.two_way += bootstrap.two_way && contains(bootstrap.two_way->interval);
    rates.over_seeds += contains(metrics::student_interval(bootstrap.by_seed).value());
    rates.claims += bootstrap.p < 0.05;
    rates.bca_claims += bootstrap.both->p < 0.05;
    const auto test = metrics::paired_t_test(bootstrap.by_seed, std::vector(design.seeds, 0.0));
    rates.claims_over_seeds += test && test->p < 0.05;
  }
  return rates;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> seeds = {3, 5, 10};
  std::vector<std::size_t> examples = {100, 1000};
  int simulations = 400;
  Design design;
  std::uint64_t seed = 1;
  CLI::App app("Coverage of intervals and false positives, by simulation");
  app.add_option("--seeds", seeds, "Numbers of seeds");
  app.add_option("--examples", examples, "Numbers of examples");
  app.add_option("--simulations", simulations, "Simulations of each row");
  app.add_option("--replicates", design.replicates, "Bootstrap replicates");
  app.add_option("--shift", design.shift, "True difference, in levels (0: equal systems)");
  app.add_option("--random-seed", seed, "Seed of the simulations");
  CLI11_PARSE(app, argc, argv);

  const World worlds[] = {
      {"neither", 0, 0}, {"examples", 0, 0.7}, {"both", 0.25, 0.7}, {"seeds", 0.25, 0}};
  fmt::print("In percent, of {} simulations a row, {} replicates, shift {}\n\n", simulations,
             design.replicates, design.shift);
  fmt::print(
      "| seeds | examples | effects of | covers: petlab | BCa | percentile | two-way t | t over "
      "seeds "
      "| claims: petlab | BCa | t over seeds |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::size_t n : examples) {
    for (const std::size_t s : seeds) {
      for (const World& world : worlds) {
        design.seeds = s;
        design.examples = n;
        const Rates rates = measure(world, design, simulations, seed);
        fmt::print("| {} | {} | {} |", s, n, world.name);
        for (const int count :
             {rates.interval, rates.bca, rates.percentile, rates.two_way, rates.over_seeds,
              rates.claims, rates.bca_claims, rates.claims_over_seeds}) {
          fmt::print(" {:.1f} |", 100.0 * count / simulations);
        }
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
