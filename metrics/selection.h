#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// A metric that the best checkpoint is selected by, and its value on the validation data.
struct SelectedMetric {
  std::string_view name;
  std::optional<double> value;  // absent: undefined
};

/// The score of a checkpoint, higher is better (reference/method.md, "Model selection"): the mean
/// over all metrics of all tasks, each counted once, those of which less is better with their sign
/// turned. Absent where one of them is undefined, and where there are none. Throws
/// std::invalid_argument for a name that metric_table() does not have.
std::optional<double> selection_score(std::span<const SelectedMetric> metrics);

/// Whether a checkpoint with `score` takes the place of the best one so far with `best`: the first
/// of equal ones stays, and an absent score loses against any other.
bool is_better_selection(const std::optional<double>& score, const std::optional<double>& best);

}  // namespace petlab::metrics
