#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/seed_statistics.h"

namespace petlab::metrics {

// petlab compares two systems over seeds only by this rule (docs/guides/explore-results.md).

/// The fewest pairs for a claim: with fewer, the deviation is too uncertain.
inline constexpr std::int64_t kFewestPairs = 3;

/// The scores of a system by pair, identified by the seed and anything else that both systems vary.
/// An undefined score has no value.
using ScoresByPair = std::map<std::string, std::optional<double>>;

/// The difference of two systems' scores.
struct PairedComparison {
  std::int64_t pairs = 0;
  std::int64_t unpaired = 0;            ///< scores of either system without a partner
  std::int64_t baseline_undefined = 0;  ///< of the baseline's scores
  std::int64_t undefined = 0;           ///< of the other system's scores
  // Means over the pairs. Absent if there are no pairs or a score is undefined: a mean over the
  // defined seeds would look like one over all of them.
  std::optional<double> baseline_mean;
  std::optional<double> mean;
  std::optional<double> effect;  ///< mean of system - baseline
  // Computed from the differences. Also absent below kFewestPairs, and if all differences are
  // equal.
  std::optional<Interval> interval;    ///< Student's t
  std::optional<double> standardised;  ///< effect / deviation of the differences (d_z)
  std::optional<double> p;             ///< paired t test, two-sided
  std::optional<double> adjusted_p;    ///< by adjust()

  /// True if the difference is significant at this level.
  bool significant(double level) const { return adjusted_p && *adjusted_p < level; }
};

/// Throws std::invalid_argument for a score that is not finite.
PairedComparison compare(const ScoresByPair& baseline, const ScoresByPair& system,
                         double confidence = 0.95);

/// For one system, the mean of each pair that every task has. Pairs of several tasks are not
/// independent; seeds are. One undefined score makes the mean undefined.
ScoresByPair mean_over_tasks(std::span<const ScoresByPair* const> tasks);

/// Applies Holm's correction to one family: all comparisons with a p in one answer.
void adjust(std::span<PairedComparison* const> family);

}  // namespace petlab::metrics
