#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

struct BestRequest {
  std::vector<results::Condition> where;
  std::string metric;                    ///< empty: the one that selects the task's best step
  std::optional<bool> higher_is_better;  ///< absent: as metrics/metric_table.h says
  std::string split = "validation";
  std::int64_t top = 1;  ///< trials of each task
};

struct BestTrial {
  std::string task;
  std::string trial_id;
  std::string metric;
  double value = 0;
  std::optional<double> test;          ///< the same metric of the test split
  std::vector<results::Value> fields;  ///< as BestResult::fields
};

struct BestResult {
  std::vector<std::string> fields;  ///< in which the selected trials differ, and the seed
  std::vector<BestTrial> trials;    ///< by task, the best first; of equal ones the first recorded
};

/// The best trials of each task. Choosing by the test split would report the luck of the draw, so
/// validation is the default. Throws std::invalid_argument where nothing is selected, and where it
/// is not known which metric counts, or which way.
BestResult best(const results::ScoreReader& reader, const BestRequest& request);

}  // namespace petlab::questions
