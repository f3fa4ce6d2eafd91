#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace petlab::metrics {

// Statistics of one number over seeds. A statistic is undefined (std::nullopt, never 0) if n is too
// small. All functions throw std::invalid_argument for values that are not finite.

/// Undefined without values.
std::optional<double> mean(std::span<const double> values);
std::optional<double> median(std::span<const double> values);
std::optional<double> minimum(std::span<const double> values);
std::optional<double> maximum(std::span<const double> values);

/// Sample standard deviation, with n - 1; undefined for n < 2.
std::optional<double> sample_deviation(std::span<const double> values);

/// sample_deviation / sqrt(n); undefined for n < 2.
std::optional<double> standard_error(std::span<const double> values);

/// A confidence interval.
struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

/// mean ± t((1 + confidence) / 2, n - 1) · standard error; undefined for n < 2.
/// Throws std::invalid_argument unless 0 < confidence < 1.
std::optional<Interval> student_interval(std::span<const double> values, double confidence = 0.95);

/// Percentile bootstrap interval of the mean; undefined for n < 2. Up to kExactBootstrapSize values
/// the whole bootstrap distribution is enumerated, without randomness. For more values, `resamples`
/// are drawn by a separate generator from `seed`, identically on every machine.
std::optional<Interval> bootstrap_interval(std::span<const double> values, double confidence = 0.95,
                                           std::int64_t resamples = 10000,
                                           std::uint64_t seed = 12345);
inline constexpr std::size_t kExactBootstrapSize = 10;

/// A two-sided t test.
struct TTest {
  double t = 0;
  double degrees_of_freedom = 0;
  double p = 1;
};

/// Tests the differences a[i] - b[i]; undefined for n < 2 and if all differences are equal. They
/// count as equal within kEqualSpread of the largest value: equal decimals (0.2 - 0.1 and 0.3 -
/// 0.2) differ in their last bits and would give p near 0. Throws std::invalid_argument if the
/// lengths differ.
inline constexpr double kEqualSpread = 1e-10;
std::optional<TTest> paired_t_test(std::span<const double> a, std::span<const double> b);

/// Welch's test of two samples of unequal variance; undefined if a sample has fewer than two
/// values, or both are constant.
std::optional<TTest> welch_t_test(std::span<const double> a, std::span<const double> b);

/// Holm's step-down adjustment of the p values of one family of tests, in the given order: the i-th
/// smallest of m times m - i + 1, at least the adjusted value before it, at most 1 (Holm 1979).
/// Throws std::invalid_argument for a value outside [0, 1].
std::vector<double> holm_adjusted(std::span<const double> p_values);

/// Makes near ties exact, keeping the order: among the sorted values, a run of neighbours at most
/// `slack` apart gets its lowest value. Ranks need this, because differences of equal decimals
/// differ in their last bits (0.3 - 0.2 and 0.2 - 0.1).
std::vector<double> with_exact_ties(std::vector<double> values, double slack);

/// Wilcoxon's signed-rank test (Wilcoxon 1945).
struct WilcoxonTest {
  std::int64_t nonzero = 0;  // pairs that differ; the others are ignored
  double w_plus = 0;  // sum of the ranks of positive differences a - b; ties get the average rank
  double w_minus = 0;
  double p = 1;  // two-sided and exact, from all 2^nonzero sign assignments
};

/// Differences within kEqualSpread of the largest value are equal, as in paired_t_test. Undefined
/// if no pair differs. Throws std::invalid_argument if the lengths differ, and for more than
/// kMaxWilcoxonPairs pairs.
std::optional<WilcoxonTest> wilcoxon_signed_rank(std::span<const double> a,
                                                 std::span<const double> b);

inline constexpr std::size_t kMaxWilcoxonPairs = 500;

/// Student's t distribution with any degrees of freedom > 0: its quantile at p, and the probability
/// of |t| or more.
double student_t_quantile(double p, double degrees_of_freedom);
double student_t_two_sided_p(double t, double degrees_of_freedom);

/// A statistic that reports can request by name.
struct SeedStatistic {
  std::string_view name;  // n, mean, sd, se, median, min, max, ci95_low, ci95_high
  std::string_view help;
  std::optional<double> (*function)(std::span<const double> values);
};

/// All statistics, in the order of help texts.
std::span<const SeedStatistic> seed_statistics();

/// The row with that name, or nullptr.
const SeedStatistic* find_seed_statistic(std::string_view name);

}  // namespace petlab::metrics
