#include "metrics/selection.h"

#include "metrics/metric_table.h"

namespace petlab::metrics {

std::optional<double> selection_score(std::span<const SelectedMetric> metrics) {
  if (metrics.empty()) return std::nullopt;
  double sum = 0;
  bool defined = true;
  for (const SelectedMetric& metric : metrics) {
    const std::optional<bool> higher = higher_is_better(metric.name);
    if (!higher) metric_named(metric.name);  // throws
    const double sign = *higher ? 1 : -1;
    defined = defined && metric.value.has_value();
    sum += sign * metric.value.value_or(0);
  }
  if (!defined) return std::nullopt;
  return sum / static_cast<double>(metrics.size());
}

bool is_better_selection(const std::optional<double>& score, const std::optional<double>& best) {
  return score && (!best || *score > *best);
}

}  // namespace petlab::metrics
