#include "orchestrator/running/best_metric.h"

#include <algorithm>

#include "metrics/metric_table.h"
#include "metrics/selection.h"

namespace petlab::orchestrator {

ValidationScores::ValidationScores(const std::vector<const sweeps::TaskDeclaration*>& tasks,
                                   const std::string& metric) {
  for (const sweeps::TaskDeclaration* task : tasks) {
    const std::vector<std::string> names =
        metric.empty() ? task->select_by : std::vector<std::string>{metric};
    for (const std::string& name : names) {
      unknown_ = unknown_ || !metrics::higher_is_better(name);
      wanted_.emplace_back(task->name, name);
    }
  }
}

std::optional<ValidationScore> ValidationScores::add(const protocol::Metric& metric) {
  const std::pair key(metric.task, metric.name);
  if (unknown_ || metric.split != "validation" ||
      std::find(wanted_.begin(), wanted_.end(), key) == wanted_.end()) {
    return std::nullopt;
  }
  if (metric.step != step_) {
    step_ = metric.step;
    seen_.clear();
  }
  seen_[key] = metric.value;
  if (seen_.size() < wanted_.size()) return std::nullopt;
  std::vector<metrics::SelectedMetric> values;
  for (const auto& wanted : wanted_) values.push_back({wanted.second, seen_.at(wanted)});
  return ValidationScore{step_, metrics::selection_score(values)};
}

void BestMetric::add(const protocol::Metric& metric) {
  const std::optional<ValidationScore> now = scores_.add(metric);
  if (now && metrics::is_better_selection(now->score, best_)) best_ = now->score;
}

std::optional<double> seconds_left(std::int64_t step, std::int64_t of, std::int64_t first,
                                   double seconds, std::optional<double> expected_seconds) {
  if (step > first && of >= step && seconds > 0) {
    return static_cast<double>(of - step) * seconds / static_cast<double>(step - first);
  }
  if (!expected_seconds || *expected_seconds <= seconds) return std::nullopt;
  return *expected_seconds - seconds;
}

}  // namespace petlab::orchestrator
