#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "metrics/paired_comparison.h"
#include "metrics/task_ranks.h"
#include "questions/sides.h"

namespace petlab::questions {

struct RankingRequest : SideQuestion {
  std::vector<Side> sides;  ///< at least three
  double level = 0.05;      ///< significance level of the tests
};

/// A task with the scores by which it ranks sides.
struct RankedTask {
  std::string name;
  bool higher_is_better = true;
  std::vector<metrics::ScoresByPair> scores;  ///< by side; empty if the side has none
};

/// The ranks of all sides over their common tasks.
struct Ranking {
  std::string metric;                 ///< empty: each task has its own
  double level = 0.05;                ///< significance level of the tests
  std::vector<std::string> tasks;     ///< those with a defined score of every side
  std::vector<std::string> left_out;  ///< the other tasks
  /// Why there are no ranks: `found 2 variants, expected at least 3`. The rest is then empty.
  std::string missing;
  std::vector<std::size_t> order;  ///< indices of the sides by average rank, best first
  std::vector<std::string> sides;  ///< names in that order
  /// In that order. If Friedman's test shows no difference, each list of groups is a single group
  /// of all sides: pairs are tested only after it (Demšar 2006).
  metrics::VariantRanks ranks;
  bool differs = false;  ///< Friedman's test shows a difference
  /// The letters of the groups of each side, such as "a" and "ab". Sides that share a letter do not
  /// differ significantly (Piepho 2004). By Nemenyi's critical difference, and by Wilcoxon's test
  /// with Holm's adjustment.
  std::vector<std::string> nemenyi;
  std::vector<std::string> wilcoxon;
};

struct RankingResult {
  std::vector<Ranking> rankings;
  std::vector<std::string> notes;
};

/// Ranks the sides over tasks. A side's score of a task is the mean over its seeds (Demšar 2006).
/// Tasks that a side lacks or has an undefined score for are left out.
Ranking rank_over_tasks(const std::vector<std::string>& sides, const std::vector<RankedTask>& tasks,
                        double level);

/// Ranks the sides by each metric. Metrics with an unknown direction are left out with a note.
/// Throws std::invalid_argument for fewer than three sides, if no metric has two tasks left, and as
/// SideScores.
RankingResult rank(const results::ScoreReader& reader, const RankingRequest& request);

/// `Friedman's test over 10 tasks gives p = 0.0006`
std::string friedman_text(const Ranking& ranking);
/// The result of all tests, also of the order by Wilcoxon's test: `a, b > c`.
std::string tests_text(const Ranking& ranking);
/// `p = 0.0006`, `p < 0.0001`
std::string p_text(double p);

/// The fewest tasks over which Wilcoxon's test with Holm's adjustment can tell any two of the sides
/// apart: with fewer, even the smallest possible p is above the level.
std::int64_t fewest_wilcoxon_tasks(std::size_t sides, double level);

}  // namespace petlab::questions
