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

/// The best validation score of an attempt so far, as the trainer chooses its best step
/// (metrics/selection.h): the mean over all metrics that its tasks select by, those of which less
/// is better with their sign turned. Higher is better.
class BestMetric {
 public:
  explicit BestMetric(const std::vector<const sweeps::TaskDeclaration*>& tasks);

  /// Metrics of other splits and names are ignored.
  void add(const protocol::Metric& metric);
  /// Absent until one step has all of them, and where this petlab does not know one by name.
  const std::optional<double>& value() const { return best_; }

 private:
  std::vector<std::pair<std::string, std::string>> wanted_;  // task, name
  std::int64_t step_ = -1;
  std::map<std::pair<std::string, std::string>, std::optional<double>> seen_;  // at step_
  bool unknown_ = false;
  std::optional<double> best_;
};

/// Seconds until a trial is over, from the speed of its steps in `seconds` since step `first`, or
/// else from what its like took. Absent: not known.
std::optional<double> seconds_left(std::int64_t step, std::int64_t of, std::int64_t first,
                                   double seconds, std::optional<double> expected_seconds);

}  // namespace petlab::orchestrator
