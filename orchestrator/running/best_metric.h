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

/// The best validation result of an attempt so far, computed as the trainer selects its best step
/// (metrics/selection.h): the mean of all metrics that its tasks select by, with lower-is-better
/// metrics negated. Higher is better.
class BestMetric {
 public:
  explicit BestMetric(const std::vector<const sweeps::TaskDeclaration*>& tasks);

  /// Metrics of other splits and names are ignored.
  void add(const protocol::Metric& metric);
  /// Absent until one step has all of these metrics, or if this petlab does not know one of them.
  const std::optional<double>& value() const { return best_; }

 private:
  std::vector<std::pair<std::string, std::string>> wanted_;  // task, name
  std::int64_t step_ = -1;
  std::map<std::pair<std::string, std::string>, std::optional<double>> seen_;  // at step_
  bool unknown_ = false;
  std::optional<double> best_;
};

/// Estimates the seconds until a trial is over: from its speed (the steps since `first`, which took
/// `seconds`), otherwise from `expected_seconds`, the duration of similar trials. Absent: unknown.
std::optional<double> seconds_left(std::int64_t step, std::int64_t of, std::int64_t first,
                                   double seconds, std::optional<double> expected_seconds);

}  // namespace petlab::orchestrator
