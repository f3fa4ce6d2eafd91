#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/seed_statistics.h"

namespace petlab::metrics {

// The one rule by which petlab compares two systems over seeds (docs/guides/explore-results.md).

/// Nothing is claimed from fewer pairs: their deviation is hardly known.
inline constexpr std::int64_t kFewestPairs = 3;

/// The scores of a system by what tells a pair (a seed, and whatever else both systems vary); an
/// undefined score has no value.
using ScoresByPair = std::map<std::string, std::optional<double>>;

/// What the scores of two systems say about their difference.
struct PairedComparison {
  std::int64_t pairs = 0;
  std::int64_t unpaired = 0;            ///< scores of either system without a partner
  std::int64_t baseline_undefined = 0;  ///< of the baseline's scores
  std::int64_t undefined = 0;           ///< of the other system's scores
  // Over the pairs. Absent where there is no pair, or where a score is undefined: a mean over the
  // seeds that happen to be defined would pass for one over all of them.
  std::optional<double> baseline_mean;
  std::optional<double> mean;
  std::optional<double> effect;  ///< mean of system - baseline
  // Of the differences. Absent too below kFewestPairs, and where all differences are equal.
  std::optional<Interval> interval;    ///< Student's t
  std::optional<double> standardised;  ///< effect / deviation of the differences (d_z)
  std::optional<double> p;             ///< paired t test, two-sided
  std::optional<double> adjusted_p;    ///< by adjust()

  /// Whether the difference is shown at this level.
  bool significant(double level) const { return adjusted_p && *adjusted_p < level; }
};

/// Throws std::invalid_argument for a score that is not finite.
PairedComparison compare(const ScoresByPair& baseline, const ScoresByPair& system,
                         double confidence = 0.95);

/// The mean of each pair that every task has, of one system: pairs of several tasks are not
/// independent, seeds are. One undefined score makes the mean undefined.
ScoresByPair mean_over_tasks(std::span<const ScoresByPair* const> tasks);

/// Holm's correction over one family: all comparisons with a p that one answer shows.
void adjust(std::span<PairedComparison* const> family);

}  // namespace petlab::metrics
