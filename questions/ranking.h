#pragma once

#include <string>
#include <vector>

#include "metrics/task_ranks.h"
#include "questions/sides.h"

namespace petlab::questions {

struct RankingRequest : SideQuestion {
  std::vector<Side> sides;  ///< at least three
  double level = 0.05;      ///< significance level of the groups
};

/// The ranks of all sides by one metric, over their common tasks.
struct Ranking {
  std::string metric;
  std::vector<std::string> tasks;
  std::vector<std::string> sides;  ///< best average rank first
  metrics::VariantRanks ranks;     ///< in the order of `sides`
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

/// Ranks the sides by each metric. A task's score is the mean over a side's seeds (Demšar 2006).
/// Leaves out, with a note, tasks that a side lacks or has an undefined score for, and metrics with
/// an unknown direction. Throws std::invalid_argument for fewer than three sides, if no metric has
/// two tasks left, and as SideScores.
RankingResult rank(const results::ScoreReader& reader, const RankingRequest& request);

}  // namespace petlab::questions
