#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// A metric for selecting the best checkpoint, and its value on the validation data.
struct SelectedMetric {
  std::string_view name;
  std::optional<double> value;  // absent: undefined
};

/// The score of a checkpoint, higher is better (reference/method.md, "Model selection"): the mean
/// over all metrics of all tasks, each counted once, metrics for which lower is better being
/// negated. Absent if one is undefined or there are none. Throws std::invalid_argument for a name
/// that is not in metric_table().
std::optional<double> selection_score(std::span<const SelectedMetric> metrics);

/// True if a checkpoint with `score` replaces the best one so far with `best`. The first of equal
/// ones stays; an absent score loses against any other.
bool is_better_selection(const std::optional<double>& score, const std::optional<double>& best);

}  // namespace petlab::metrics
