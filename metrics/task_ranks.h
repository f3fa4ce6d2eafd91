#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace petlab::metrics {

/// A test statistic with its p value.
struct RankTest {
  double statistic = 0;
  double p = 1;
};

/// Two variants; `first` < `second`.
struct VariantPair {
  std::size_t first = 0;
  std::size_t second = 0;
  double nemenyi_p = 1;   ///< adjusted for all pairs by the studentized range
  double wilcoxon_p = 1;  ///< exact signed-rank test over the tasks; 1 if they never differ
  double holm_p = 1;      ///< wilcoxon_p with Holm's adjustment over all pairs
};

/// A comparison of several variants over several tasks (Demšar 2006), with everything for a
/// critical-difference diagram. Variants are indices into the scores.
struct VariantRanks {
  std::int64_t tasks = 0;
  /// (variants): rank 1 is the best on a task; equal scores get their average rank.
  std::vector<double> average_ranks;
  /// Friedman's chi squared with variants - 1 degrees of freedom, corrected for ties (Friedman
  /// 1937). Absent if every task ties all variants.
  std::optional<RankTest> friedman;
  /// Iman and Davenport's F with variants - 1 and (variants - 1)(tasks - 1) degrees of freedom
  /// (1980), less conservative than Friedman's chi squared. Infinite if all tasks have the same
  /// order. Absent if `friedman` is or there is one task.
  std::optional<RankTest> iman_davenport;
  /// Nemenyi's critical difference: variants differ if their average ranks differ by more (Nemenyi
  /// 1963).
  double critical_difference = 0;
  std::vector<VariantPair> pairs;  ///< all pairs: (0, 1), (0, 2), … (1, 2), …
  /// Maximal sets of two or more variants without a pair that differs. Each set is sorted, and the
  /// sets are in lexicographic order. By the critical difference, a set is a run in the order of
  /// average ranks:
  std::vector<std::vector<std::size_t>> nemenyi_groups;
  /// By holm_p <= level (Benavoli, Corani and Mangili 2016). Such a set may skip a variant with a
  /// rank in between, so a single bar of a diagram cannot always show it.
  std::vector<std::vector<std::size_t>> wilcoxon_groups;
};

/// scores[task][variant]; higher is better (negate scores for which lower is better). Scores within
/// kEqualSpread of the task's largest are equal. Throws std::invalid_argument for fewer than two
/// variants, no tasks or more than kMaxWilcoxonPairs, tasks with different numbers of scores, a
/// score that is not finite, and a level outside (0, 1).
VariantRanks rank_variants(std::span<const std::vector<double>> scores, double level = 0.05);

/// Nemenyi's critical difference of average ranks: q sqrt(variants (variants + 1) / (6 tasks)) with
/// q = the studentized range's (1 - level) quantile for this many means and infinite degrees of
/// freedom / sqrt 2. Throws std::invalid_argument for fewer than two variants, no tasks, and a
/// level outside (0, 1).
double critical_difference(std::int64_t variants, std::int64_t tasks, double level = 0.05);

}  // namespace petlab::metrics
