#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/events.h"
#include "sweeps/task.h"

namespace petlab::orchestrator {

/// The score of a validation.
struct ValidationScore {
  std::int64_t step = 0;
  /// Higher is better: the mean of its metrics, with lower-is-better metrics negated
  /// (metrics/selection.h). Absent: a metric is undefined.
  std::optional<double> score;
};

/// Computes the score of each validation from the metrics that a trial reports one by one.
class ValidationScores {
 public:
  /// Of the metric of that name of each task; empty: of the metrics that the tasks select by, as
  /// the trainer selects its best step.
  explicit ValidationScores(const std::vector<const sweeps::TaskDeclaration*>& tasks,
                            const std::string& metric = {});

  /// The score of the metric's step, once that step has all of its metrics. Other splits and names
  /// are ignored. Always absent if the better direction of a metric is unknown.
  std::optional<ValidationScore> add(const protocol::Metric& metric);

 private:
  std::vector<std::pair<std::string, std::string>> wanted_;  // task, name
  std::int64_t step_ = -1;
  std::map<std::pair<std::string, std::string>, std::optional<double>> seen_;  // at step_
  bool unknown_ = false;
};

/// The best validation score of an attempt so far.
class BestMetric {
 public:
  explicit BestMetric(const std::vector<const sweeps::TaskDeclaration*>& tasks) : scores_(tasks) {}

  void add(const protocol::Metric& metric);
  /// Absent until there is one.
  const std::optional<double>& value() const { return best_; }

 private:
  ValidationScores scores_;
  std::optional<double> best_;
};

/// Estimates the seconds until a trial is over: from its speed (the steps since `first`, which took
/// `seconds`), otherwise from `expected_seconds`, the duration of similar trials. Absent: unknown.
std::optional<double> seconds_left(std::int64_t step, std::int64_t of, std::int64_t first,
                                   double seconds, std::optional<double> expected_seconds);

}  // namespace petlab::orchestrator
