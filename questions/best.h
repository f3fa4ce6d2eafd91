#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

struct BestRequest {
  std::vector<results::Condition> where;
  std::string metric;                    ///< empty: the metric that selects the task's best step
  std::optional<bool> higher_is_better;  ///< absent: as in metrics/metric_table.h
  std::string split = "validation";
  std::int64_t top = 1;  ///< number of trials per task
};

struct BestTrial {
  std::string task;
  std::string trial_id;
  std::string metric;
  double value = 0;
  std::optional<double> test;          ///< of the same metric on the test split
  std::vector<results::Value> fields;  ///< in the order of BestResult::fields
};

struct BestResult {
  std::vector<std::string> fields;  ///< those that differ among the trials, and the seed
  std::vector<BestTrial> trials;    ///< by task, best first; ties in the order of recording
};

/// Finds the best trials of each task. The default split is validation, because choosing by test
/// scores would report the luckiest trial. Throws std::invalid_argument if nothing is selected, or
/// if the metric or its direction is unknown.
BestResult best(const results::ScoreReader& reader, const BestRequest& request);

}  // namespace petlab::questions
