#include "metrics/crossed_bootstrap.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "metrics/numpy_random.h"
#include "metrics/paired_comparison.h"
#include "metrics/resampling.h"

namespace petlab::metrics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_resampling(const PairedExamples& pairs, const CrossedBootstrapOptions& options) {
  if (pairs.seeds() == 0) throw std::invalid_argument("no seeds: a bootstrap needs at least 1");
  if (pairs.examples() < 2 || pairs.examples() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument(
        fmt::format("{} examples: a bootstrap needs 2 to 2^32 - 1", pairs.examples()));
  }
  if (options.replicates < 1) {
    throw std::invalid_argument(
        fmt::format("replicates is {}, must be at least 1", options.replicates));
  }
  if (!(options.confidence > 0 && options.confidence < 1)) {
    throw std::invalid_argument(
        fmt::format("the confidence is {}, must be between 0 and 1", options.confidence));
  }
  if (options.threads < 1) {
    throw std::invalid_argument(fmt::format("threads is {}, must be at least 1", options.threads));
  }
}

double plain_mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How far leaving out each unit moves the difference, times the number of other units; sums to 0.
std::vector<double> influences(std::vector<double> without) {
  const double center = plain_mean(without);
  for (double& value : without) {
    value = static_cast<double>(without.size() - 1) * (center - value);
  }
  return without;
}

double scaled_power_sum(std::span<const double> influences, int power) {
  double sum = 0;
  for (const double value : influences) sum += std::pow(value, power);
  return sum / std::pow(static_cast<double>(influences.size()), power);
}

// The acceleration of a statistic of two independent samples, or of one if `seeds` is empty
// (Davison and Hinkley 1997, 5.3).
double acceleration_of(std::span<const double> seeds, std::span<const double> examples) {
  double cubes = scaled_power_sum(examples, 3);
  double squares = scaled_power_sum(examples, 2);
  if (!seeds.empty()) {
    cubes += scaled_power_sum(seeds, 3);
    squares += scaled_power_sum(seeds, 2);
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

double normal_quantile(double p) {
  if (p <= 0) return -kInfinity;
  if (p >= 1) return kInfinity;
  return boost::math::quantile(boost::math::normal(), p);
}

double normal_below(double z) {
  if (std::isinf(z)) return z > 0 ? 1 : 0;
  return boost::math::cdf(boost::math::normal(), z);
}

// Interpolates linearly between order statistics, like numpy.percentile.
double sorted_quantile(std::span<const double> sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - static_cast<double>(below));
}

// BCa's correction of quantiles, and its inverse.
struct Correction {
  double bias = 0;
  double acceleration = 0;

  // The share of replicates below the end that excludes `tail` of the probability.
  double share(double tail) const {
    const double z = bias + normal_quantile(tail);
    const double divisor = 1 - acceleration * z;
    return divisor > 0 ? normal_below(bias + z / divisor) : z > 0 ? 1 : 0;
  }
  // The tail that an end excludes if `share` of the replicates is below it.
  double tail(double share) const {
    const double w = normal_quantile(share) - bias;
    if (std::isinf(w)) return w > 0 ? 1 : 0;
    const double divisor = 1 + acceleration * w;
    return divisor > 0 ? normal_below(w / divisor - bias) : w > 0 ? 1 : 0;
  }
};

ResampledDifference summarise(std::vector<double> replicates, double difference,
                              double acceleration, double confidence) {
  std::sort(replicates.begin(), replicates.end());
  // Sums of doubles that are equal as fractions can differ in their last bits, which is common for
  // metrics of counts.
  const double slack = 1e-12 * std::max({std::fabs(difference), std::fabs(replicates.front()),
                                         std::fabs(replicates.back())});
  const auto below = [&](double limit) {
    return static_cast<double>(std::lower_bound(replicates.begin(), replicates.end(), limit) -
                               replicates.begin());
  };
  const auto up_to = [&](double limit) {
    return static_cast<double>(std::upper_bound(replicates.begin(), replicates.end(), limit) -
                               replicates.begin());
  };
  const auto n = static_cast<double>(replicates.size());
  ResampledDifference result;
  result.acceleration = acceleration;
  // Ties count half: values of a metric of counts are on a grid.
  result.bias_correction =
      normal_quantile((below(difference - slack) + up_to(difference + slack)) / (2 * n));
  const double tail = (1 - confidence) / 2;
  result.percentile = {sorted_quantile(replicates, tail), sorted_quantile(replicates, 1 - tail)};
  Correction correction;
  if (std::isfinite(result.bias_correction)) {
    correction = {result.bias_correction, acceleration};
    result.bca = Interval{sorted_quantile(replicates, correction.share(tail)),
                          sorted_quantile(replicates, correction.share(1 - tail))};
  }
  result.deviation = replicates.size() < 2 ? 0 : *sample_deviation(replicates);
  const double not_above = (up_to(slack) + 1) / (n + 1);
  const double not_below = (n - below(-slack) + 1) / (n + 1);
  result.p =
      std::min({1.0, 2 * correction.tail(not_above), 2 * (1 - correction.tail(1 - not_below))});
  return result;
}

struct Draw {
  std::vector<std::uint32_t> seeds;
  std::vector<std::uint32_t> times;  // how often each example is drawn
};

// Draws like numpy.random.default_rng(seed) for integers(0, seeds, (250, seeds)), then integers(0,
// examples, (250, examples)), and so on, with a shorter last block. A bootstrap in a few lines of
// numpy therefore has the same replicates.
class CrossedDraws {
 public:
  CrossedDraws(std::uint64_t seed, std::size_t seeds, std::size_t examples, std::int64_t replicates)
      : random_(seed), seeds_(seeds), examples_(examples), left_(replicates) {}

  void next(Draw& draw) {
    constexpr std::int64_t kBlock = 250;
    if (at_ == block_.size()) {
      block_.resize(seeds_ * static_cast<std::size_t>(std::min(kBlock, left_)));
      left_ -= std::min(kBlock, left_);
      for (std::uint32_t& seed : block_) seed = random_.below(seeds_);
      at_ = 0;
    }
    const auto first = block_.begin() + static_cast<std::ptrdiff_t>(at_);
    draw.seeds.assign(first, first + static_cast<std::ptrdiff_t>(seeds_));
    at_ += seeds_;
    draw.times.assign(examples_, 0);
    for (std::size_t i = 0; i < examples_; ++i) ++draw.times[random_.below(examples_)];
  }

 private:
  NumpyRandom random_;
  std::size_t seeds_;
  std::size_t examples_;
  std::int64_t left_;
  std::vector<std::uint32_t> block_;  // seeds of a block's replicates
  std::size_t at_ = 0;
};

// (seeds): each seed's difference over all examples; empty if one is undefined.
std::vector<double> differences_by_seed(const PairedExamples& pairs) {
  const std::vector<std::uint32_t> once(pairs.examples(), 1);
  std::vector<double> by_seed;
  for (std::size_t seed = 0; seed < pairs.seeds(); ++seed) {
    const auto difference = pairs.difference(seed, once);
    if (!difference) return {};
    by_seed.push_back(*difference);
  }
  return by_seed;
}

// (seeds, examples): the differences without each example; empty if one is undefined.
std::vector<std::vector<double>> without_each_example(const PairedExamples& pairs, int threads) {
  std::vector<std::vector<double>> without(pairs.seeds());
  std::atomic<bool> undefined = false;
  for_each_sample<char>(
      static_cast<std::int64_t>(pairs.seeds()), threads, [](char) {},
      [&](std::int64_t seed, char) {
        auto of_seed = pairs.leave_one_out(static_cast<std::size_t>(seed));
        if (!of_seed) undefined = true;
        if (of_seed) without[static_cast<std::size_t>(seed)] = std::move(*of_seed);
      });
  if (undefined) return {};
  return without;
}

std::vector<double> mean_over_seeds(const std::vector<std::vector<double>>& by_seed) {
  std::vector<double> means(by_seed.front().size(), 0);
  for (const std::vector<double>& of_seed : by_seed) {
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += of_seed[i];
  }
  for (double& value : means) value /= static_cast<double>(by_seed.size());
  return means;
}

// Uses the pseudo-values n by_seed - (n - 1) without. For a metric that is a mean over examples
// these are the examples' values.
std::optional<TwoWayTest> two_way_test(double difference, std::span<const double> by_seed,
                                       const std::vector<std::vector<double>>& without,
                                       std::span<const double> of_examples, double confidence) {
  const auto seeds = static_cast<double>(by_seed.size());
  const auto n = static_cast<double>(of_examples.size());
  const double of_seed = n * std::pow(*sample_deviation(by_seed), 2);
  double of_example = 0;
  for (const double value : of_examples) of_example += value * value;
  of_example *= seeds / (n - 1);
  double of_residual = 0;
  for (const std::vector<double>& row : without) {
    const double center = plain_mean(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      // Both terms are deviations of pseudo-values from their means.
      of_residual += std::pow((n - 1) * (center - row[i]) - of_examples[i], 2);
    }
  }
  of_residual /= (seeds - 1) * (n - 1);
  const double total = std::max({of_seed + of_example - of_residual, of_seed, of_example});
  if (total <= 0) return std::nullopt;
  const double error = std::sqrt(total / (seeds * n));
  TwoWayTest test;
  test.degrees_of_freedom = total * total /
                            (of_seed * of_seed / (seeds - 1) + of_example * of_example / (n - 1) +
                             of_residual * of_residual / ((seeds - 1) * (n - 1)));
  const double half = error * student_t_quantile((1 + confidence) / 2, test.degrees_of_freedom);
  test.interval = {difference - half, difference + half};
  test.p = student_t_two_sided_p(difference / error, test.degrees_of_freedom);
  return test;
}

std::vector<double> without_each_seed(std::span<const double> by_seed) {
  if (by_seed.size() < 2) return {};
  const double sum = std::accumulate(by_seed.begin(), by_seed.end(), 0.0);
  std::vector<double> without;
  for (const double one : by_seed) {
    without.push_back((sum - one) / static_cast<double>(by_seed.size() - 1));
  }
  return without;
}

}  // namespace

std::optional<std::vector<double>> PairedExamples::leave_one_out(std::size_t seed) const {
  std::vector<std::uint32_t> times(examples(), 1);
  std::vector<double> without;
  for (std::uint32_t& left_out : times) {
    left_out = 0;
    const auto value = difference(seed, times);
    if (!value) return std::nullopt;
    without.push_back(*value);
    left_out = 1;
  }
  return without;
}

std::optional<CrossedBootstrap> crossed_bootstrap(const PairedExamples& pairs,
                                                  const CrossedBootstrapOptions& options) {
  require_resampling(pairs, options);
  CrossedBootstrap result;
  result.by_seed = differences_by_seed(pairs);
  if (result.by_seed.empty()) return std::nullopt;
  const auto without = without_each_example(pairs, options.threads);
  if (without.empty()) return std::nullopt;
  result.difference = plain_mean(result.by_seed);
  result.seed_error = standard_error(result.by_seed);
  const std::vector<double> of_examples = influences(mean_over_seeds(without));
  const std::vector<double> of_seeds = influences(without_each_seed(result.by_seed));
  const auto n = static_cast<double>(pairs.examples());
  result.example_error = std::sqrt(scaled_power_sum(of_examples, 2) * n / (n - 1));

  std::vector<double> both(static_cast<std::size_t>(options.replicates));
  std::vector<double> examples_only(both.size());
  std::atomic<bool> undefined = false;
  CrossedDraws draws(options.seed, pairs.seeds(), pairs.examples(), options.replicates);
  for_each_sample<Draw>(
      options.replicates, options.threads, [&](Draw& draw) { draws.next(draw); },
      [&](std::int64_t replicate, const Draw& draw) {
        std::vector<double> by_seed(pairs.seeds());
        for (std::size_t seed = 0; seed < by_seed.size() && !undefined; ++seed) {
          const auto difference = pairs.difference(seed, draw.times);
          if (!difference) undefined = true;
          by_seed[seed] = difference.value_or(0);
        }
        double sum = 0;
        for (const std::uint32_t seed : draw.seeds) sum += by_seed[seed];
        both[static_cast<std::size_t>(replicate)] = sum / static_cast<double>(by_seed.size());
        examples_only[static_cast<std::size_t>(replicate)] = plain_mean(by_seed);
      });
  if (undefined) return std::nullopt;
  result.examples = summarise(std::move(examples_only), result.difference,
                              acceleration_of({}, of_examples), options.confidence);
  if (static_cast<std::int64_t>(pairs.seeds()) >= kFewestPairs) {
    result.both = summarise(std::move(both), result.difference,
                            acceleration_of(of_seeds, of_examples), options.confidence);
    result.two_way =
        two_way_test(result.difference, result.by_seed, without, of_examples, options.confidence);
    result.interval = result.both->bca.value_or(result.both->percentile);
    result.p = result.both->p;
    if (result.two_way) {
      result.interval = Interval{std::min(result.interval->low, result.two_way->interval.low),
                                 std::max(result.interval->high, result.two_way->interval.high)};
      result.p = std::max(*result.p, result.two_way->p);
    }
  }
  return result;
}

}  // namespace petlab::metrics
