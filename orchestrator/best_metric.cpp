#include "orchestrator/best_metric.h"

#include <algorithm>

namespace petlab::orchestrator {

BestMetric::BestMetric(const std::vector<const sweeps::TaskDeclaration*>& tasks) {
  for (const sweeps::TaskDeclaration* task : tasks) {
    for (const std::string& name : task->select_by) wanted_.emplace_back(task->name, name);
  }
}

void BestMetric::add(const sweeps::Metric& metric) {
  const std::pair key(metric.task, metric.name);
  if (metric.split != "validation" || !metric.value ||
      std::find(wanted_.begin(), wanted_.end(), key) == wanted_.end()) {
    return;
  }
  if (metric.step != step_) {
    step_ = metric.step;
    seen_.clear();
  }
  seen_[key] = *metric.value;
  if (seen_.size() < wanted_.size()) return;
  double sum = 0;
  for (const auto& [name, value] : seen_) sum += value;
  best_ = std::max(best_.value_or(-1e300), sum / static_cast<double>(seen_.size()));
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
