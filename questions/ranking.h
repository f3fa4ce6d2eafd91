#pragma once

#include <string>
#include <vector>

#include "metrics/task_ranks.h"
#include "questions/sides.h"

namespace petlab::questions {

struct RankingRequest : SideQuestion {
  std::vector<Side> sides;  ///< at least three
  double level = 0.05;      ///< for groups
};

/// Sides ranked by one metric over the tasks that all of them have.
struct Ranking {
  std::string metric;
  std::vector<std::string> tasks;
  std::vector<std::string> sides;  ///< the best average rank first
  metrics::VariantRanks ranks;     ///< of `sides`
  /// A letter for each group without a shown difference, as in "a" and "ab": sides that share a
  /// letter may be equally good (Piepho 2004). By Nemenyi's critical difference, and by Wilcoxon's
  /// test with Holm's adjustment.
  std::vector<std::string> nemenyi;
  std::vector<std::string> wilcoxon;
};

struct RankingResult {
  std::vector<Ranking> rankings;
  std::vector<std::string> notes;
};

/// Ranks the sides by each metric, a task's score being the mean over the seeds of a side (Demšar
/// 2006). Left out, with a note: tasks that some side lacks or for which it has an undefined score,
/// and metrics of which it is not known whether higher is better. Throws std::invalid_argument for
/// fewer than three sides, where no metric has two tasks left, and as SideScores.
RankingResult rank(const results::ScoreReader& reader, const RankingRequest& request);

}  // namespace petlab::questions
