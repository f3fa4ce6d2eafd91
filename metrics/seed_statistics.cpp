#include "metrics/seed_statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "metrics/correlation.h"

namespace petlab::metrics {
namespace {

void require_finite(std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw std::invalid_argument(
          fmt::format("value {} of element {} is not finite", values[i], i));
    }
  }
}

void require_equal_lengths(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw std::invalid_argument(
        fmt::format("{} and {} values: a paired test needs equal numbers", a.size(), b.size()));
  }
}

void require_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument(
        fmt::format("the confidence is {}, must be between 0 and 1", confidence));
  }
}

long double exact_mean(std::span<const double> values) {
  long double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<long double>(values.size());
}

// Sum of squared differences from the mean, divided by n - 1; n >= 2.
long double variance(std::span<const double> values) {
  const long double center = exact_mean(values);
  long double sum = 0;
  for (const double value : values) {
    const long double difference = value - center;
    sum += difference * difference;
  }
  return sum / static_cast<long double>(values.size() - 1);
}

bool constant(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
}

// Differences of a and b within this distance are equal apart from rounding.
double equal_spread(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (const auto& values : {a, b}) {
    for (const double value : values) largest = std::max(largest, std::fabs(value));
  }
  return kEqualSpread * largest;
}

std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

// A resample's mean and the number of the n^n resamples with these values.
struct WeightedMean {
  long double mean = 0;
  double weight = 0;
};

// Enumerates all multisets of n of the n values with their multinomial weights (integers).
void enumerate(std::span<const double> values, std::size_t next, std::size_t left, long double sum,
               double weight, std::vector<WeightedMean>& out) {
  const auto n = static_cast<long double>(values.size());
  if (next + 1 == values.size()) {
    out.push_back({(sum + static_cast<long double>(left) * values[next]) / n, weight});
    return;
  }
  // weight · C(left, taken), computed stepwise so that it stays an integer.
  double choices = 1;
  for (std::size_t taken = 0; taken <= left; ++taken) {
    enumerate(values, next + 1, left - taken, sum + static_cast<long double>(taken) * values[next],
              weight * choices, out);
    choices = choices * static_cast<double>(left - taken) / static_cast<double>(taken + 1);
  }
}

// The smallest mean with at least the fraction p of the weight at or below it.
double quantile(const std::vector<WeightedMean>& sorted, double total, double p) {
  double below = 0;
  for (const WeightedMean& item : sorted) {
    below += item.weight;
    if (below >= p * total * (1 - 1e-15)) return static_cast<double>(item.mean);
  }
  return static_cast<double>(sorted.back().mean);
}

std::vector<WeightedMean> resampled_means(std::span<const double> values, std::int64_t resamples,
                                          std::uint64_t seed) {
  // The standard fixes the engine's output, but not that of its distributions.
  std::mt19937_64 engine(seed);
  __extension__ using Wide = unsigned __int128;
  std::vector<WeightedMean> means(static_cast<std::size_t>(resamples));
  for (WeightedMean& mean_of_sample : means) {
    long double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[static_cast<std::size_t>((static_cast<Wide>(engine()) * values.size()) >> 64)];
    }
    mean_of_sample = {sum / static_cast<long double>(values.size()), 1};
  }
  return means;
}

std::optional<double> count(std::span<const double> values) {
  return static_cast<double>(values.size());
}

std::optional<double> low_end(std::span<const double> values) {
  const auto interval = student_interval(values);
  return interval ? std::optional(interval->low) : std::nullopt;
}

std::optional<double> high_end(std::span<const double> values) {
  const auto interval = student_interval(values);
  return interval ? std::optional(interval->high) : std::nullopt;
}

constexpr std::array<SeedStatistic, 9> kStatistics = {{
    {"n", "number of values", count},
    {"mean", "arithmetic mean", mean},
    {"sd", "sample standard deviation (n - 1)", sample_deviation},
    {"se", "standard error of the mean", standard_error},
    {"median", "middle value, or the mean of the two middle ones", median},
    {"min", "smallest value", minimum},
    {"max", "largest value", maximum},
    {"ci95_low", "lower end of the 95 % Student-t interval of the mean", low_end},
    {"ci95_high", "upper end of the 95 % Student-t interval of the mean", high_end},
}};

}  // namespace

std::optional<double> mean(std::span<const double> values) {
  require_finite(values);
  if (values.empty()) return std::nullopt;
  return static_cast<double>(exact_mean(values));
}

std::optional<double> median(std::span<const double> values) {
  require_finite(values);
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[half];
  return static_cast<double>(
      (static_cast<long double>(sorted[half - 1]) + static_cast<long double>(sorted[half])) / 2);
}

std::optional<double> minimum(std::span<const double> values) {
  require_finite(values);
  if (values.empty()) return std::nullopt;
  return *std::min_element(values.begin(), values.end());
}

std::optional<double> maximum(std::span<const double> values) {
  require_finite(values);
  if (values.empty()) return std::nullopt;
  return *std::max_element(values.begin(), values.end());
}

std::optional<double> sample_deviation(std::span<const double> values) {
  require_finite(values);
  if (values.size() < 2) return std::nullopt;
  // Equal values deviate by exactly 0, even if their mean is not a double.
  if (constant(values)) return 0.0;
  return static_cast<double>(std::sqrt(variance(values)));
}

std::optional<double> standard_error(std::span<const double> values) {
  require_finite(values);
  if (values.size() < 2) return std::nullopt;
  if (constant(values)) return 0.0;
  return static_cast<double>(std::sqrt(variance(values) / static_cast<long double>(values.size())));
}

std::optional<Interval> student_interval(std::span<const double> values, double confidence) {
  require_confidence(confidence);
  const auto error = standard_error(values);
  if (!error) return std::nullopt;
  const double center = *mean(values);
  const boost::math::students_t distribution(static_cast<double>(values.size() - 1));
  const double t =
      boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
  return Interval{center - t * *error, center + t * *error};
}

std::optional<Interval> bootstrap_interval(std::span<const double> values, double confidence,
                                           std::int64_t resamples, std::uint64_t seed) {
  require_confidence(confidence);
  require_finite(values);
  if (resamples < 1) {
    throw std::invalid_argument(fmt::format("resamples is {}, must be at least 1", resamples));
  }
  if (values.size() < 2) return std::nullopt;
  std::vector<WeightedMean> means;
  if (values.size() <= kExactBootstrapSize) {
    enumerate(values, 0, values.size(), 0, 1, means);
  } else {
    means = resampled_means(values, resamples, seed);
  }
  std::sort(means.begin(), means.end(),
            [](const WeightedMean& a, const WeightedMean& b) { return a.mean < b.mean; });
  double total = 0;
  for (const WeightedMean& item : means) total += item.weight;
  const double tail = (1 - confidence) / 2;
  return Interval{quantile(means, total, tail), quantile(means, total, 1 - tail)};
}

std::optional<TTest> paired_t_test(std::span<const double> a, std::span<const double> b) {
  require_finite(a);
  require_finite(b);
  require_equal_lengths(a, b);
  const std::vector<double> d = differences(a, b);
  if (d.size() < 2) return std::nullopt;
  const auto [low, high] = std::minmax_element(d.begin(), d.end());
  if (*high - *low <= equal_spread(a, b)) return std::nullopt;
  const auto n = static_cast<long double>(d.size());
  TTest test;
  test.t = static_cast<double>(exact_mean(d) / std::sqrt(variance(d) / n));
  test.degrees_of_freedom = static_cast<double>(d.size() - 1);
  test.p = student_t_two_sided_p(test.t, test.degrees_of_freedom);
  return test;
}

std::optional<TTest> welch_t_test(std::span<const double> a, std::span<const double> b) {
  require_finite(a);
  require_finite(b);
  if (a.size() < 2 || b.size() < 2 || (constant(a) && constant(b))) return std::nullopt;
  const auto na = static_cast<long double>(a.size());
  const auto nb = static_cast<long double>(b.size());
  const long double va = constant(a) ? 0 : variance(a) / na;
  const long double vb = constant(b) ? 0 : variance(b) / nb;
  TTest test;
  test.t = static_cast<double>((exact_mean(a) - exact_mean(b)) / std::sqrt(va + vb));
  test.degrees_of_freedom =
      static_cast<double>((va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1)));
  test.p = student_t_two_sided_p(test.t, test.degrees_of_freedom);
  return test;
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  for (const double p : p_values) {
    if (!(p >= 0 && p <= 1)) {
      throw std::invalid_argument(fmt::format("a p value is {}, must be 0 to 1", p));
    }
  }
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double above = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    above = std::min(1.0, std::max(above, left * p_values[order[i]]));
    adjusted[order[i]] = above;
  }
  return adjusted;
}

std::vector<double> with_exact_ties(std::vector<double> values, double slack) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> tied = values;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const bool near = values[order[i]] - values[order[i - 1]] <= slack;
    if (near) tied[order[i]] = tied[order[i - 1]];
  }
  return tied;
}

std::optional<WilcoxonTest> wilcoxon_signed_rank(std::span<const double> a,
                                                 std::span<const double> b) {
  require_finite(a);
  require_finite(b);
  require_equal_lengths(a, b);
  if (a.size() > kMaxWilcoxonPairs) {
    throw std::invalid_argument(fmt::format("{} pairs: the exact signed-rank test takes at most {}",
                                            a.size(), kMaxWilcoxonPairs));
  }
  const double equal = equal_spread(a, b);
  std::vector<double> d = differences(a, b);
  std::erase_if(d, [equal](double v) { return std::fabs(v) <= equal; });
  if (d.empty()) return std::nullopt;
  std::vector<double> sizes(d.size());
  std::transform(d.begin(), d.end(), sizes.begin(), [](double v) { return std::fabs(v); });
  const std::vector<double> ranks = average_ranks(with_exact_ties(std::move(sizes), equal));

  WilcoxonTest test;
  test.nonzero = static_cast<std::int64_t>(d.size());
  // probability[w]: the probability that the positive ranks sum to w/2 with random signs.
  std::vector<long double> probability = {1};
  for (std::size_t i = 0; i < d.size(); ++i) {
    (d[i] > 0 ? test.w_plus : test.w_minus) += ranks[i];
    const auto step = static_cast<std::size_t>(2 * ranks[i]);
    const std::size_t before = probability.size();
    probability.resize(before + step, 0);
    for (std::size_t w = probability.size(); w-- > 0;) {
      const long double without = w < before ? probability[w] : 0;
      const long double with = w >= step ? probability[w - step] : 0;
      probability[w] = (without + with) / 2;
    }
  }
  const auto observed = static_cast<std::size_t>(2 * test.w_plus);
  long double at_most = 0;
  long double at_least = 0;
  for (std::size_t w = 0; w < probability.size(); ++w) {
    if (w <= observed) at_most += probability[w];
    if (w >= observed) at_least += probability[w];
  }
  test.p = static_cast<double>(std::min(1.0L, 2 * std::min(at_most, at_least)));
  return test;
}

double student_t_quantile(double p, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), p);
}

double student_t_two_sided_p(double t, double degrees_of_freedom) {
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom),
                                                      std::fabs(t)));
}

std::span<const SeedStatistic> seed_statistics() { return kStatistics; }

const SeedStatistic* find_seed_statistic(std::string_view name) {
  for (const SeedStatistic& row : kStatistics) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace petlab::metrics
