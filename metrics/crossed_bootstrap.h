#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "metrics/seed_statistics.h"

namespace petlab::metrics {

/// Systems a and b, trained with the same seeds and scored on the same examples.
class PairedExamples {
 public:
  virtual ~PairedExamples() = default;
  virtual std::size_t seeds() const = 0;
  virtual std::size_t examples() const = 0;
  /// metric(a) - metric(b) of one seed over a sample with times[i] copies of example i. Undefined
  /// if either metric is. Must be thread-safe.
  virtual std::optional<double> difference(std::size_t seed,
                                           std::span<const std::uint32_t> times) const = 0;
  /// (examples): difference() over all examples except the i-th; undefined if one of them is. The
  /// default calls difference() for each, so its time is quadratic in the examples.
  virtual std::optional<std::vector<double>> leave_one_out(std::size_t seed) const;
};

struct CrossedBootstrapOptions {
  std::int64_t replicates = 10000;
  std::uint64_t seed = 12345;  // of numpy's default_rng, whose draws are reproduced
  double confidence = 0.95;
  int threads = 1;  // does not affect results
};

/// A difference of two systems with its uncertainty from resampling.
struct ResampledDifference {
  Interval percentile;
  /// Bias-corrected and accelerated interval (Efron 1987). Absent if all replicates are on one side
  /// of the difference.
  std::optional<Interval> bca;
  double bias_correction = 0;  ///< z0; infinite if there is no BCa interval
  double acceleration = 0;     ///< from leave-one-out influences of seeds and of examples
  double deviation = 0;  ///< of the replicates; estimates the standard error of the difference
  /// Two-sided p from the BCa interval (else the percentile interval): the smallest level at which
  /// 0 is outside. Replicates equal to 0 count as beyond it, plus one more, so p is never below 2 /
  /// (replicates + 1) without bias correction.
  double p = 1;
};

/// A t test of the difference with seeds and examples as random effects: its variance is
/// (MS_seed + MS_example - MS_residual) / (seeds examples), at least that of seeds or examples
/// alone, with Satterthwaite's degrees of freedom (1946). A metric that is not a mean over examples
/// is represented by its jackknife pseudo-values.
struct TwoWayTest {
  Interval interval;
  double degrees_of_freedom = 0;
  double p = 1;
};

/// The uncertainty of the mean over seeds of metric(a) - metric(b).
struct CrossedBootstrap {
  double difference = 0;
  std::vector<double> by_seed;  ///< (seeds): metric(a) - metric(b)
  /// Uncertainty over seeds and examples: each replicate draws seeds with replacement and, once for
  /// all drawn seeds and both systems, examples with replacement (crossed; Owen 2007). Separate
  /// examples for each seed would average away the luck of the examples that all seeds share.
  /// Absent with fewer than kFewestPairs seeds.
  std::optional<ResampledDifference> both;
  /// Absent if `both` is absent or if neither seeds nor examples differ.
  std::optional<TwoWayTest> two_way;
  /// The interval to show and to base claims on: on each side the wider of `both` and `two_way`,
  /// and the larger p. With few seeds that differ, resampling alone understates the error, because
  /// the variance of S resampled seeds is (S - 1) / S of theirs (docs/reference/metrics.md lists
  /// the measured coverage). Absent if `both` is.
  std::optional<Interval> interval;
  std::optional<double> p;
  /// Uncertainty over examples only, for exactly these seeds.
  ResampledDifference examples;
  /// The parts of the standard error: doubling the seeds, or the examples, divides the part by
  /// sqrt 2. seed_error is the standard error of by_seed's mean, absent with one seed;
  /// example_error is the jackknife's over examples.
  std::optional<double> seed_error;
  double example_error = 0;
};

/// Undefined if the metric is undefined for a seed, without one of the examples, or in a replicate.
/// Results are the same on every machine. Throws std::invalid_argument without seeds, with fewer
/// than two examples, and for options out of range.
std::optional<CrossedBootstrap> crossed_bootstrap(const PairedExamples& pairs,
                                                  const CrossedBootstrapOptions& options = {});

}  // namespace petlab::metrics
