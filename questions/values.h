#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

/// Selects values of trials.
struct ValuesRequest {
  std::vector<results::Condition> where;
  /// The fields of each row. Absent: the variant if trials have one, the seed, and all fields in
  /// which the trials differ, with each key of the free group separately.
  std::optional<std::vector<results::Word>> by;
  std::vector<std::string> metrics;  ///< empty: all
  std::vector<std::string> splits = {"test"};
  results::ScoreQuestion::Steps steps = results::ScoreQuestion::Steps::selected;
};

struct ValueSink {
  std::function<void(const std::vector<std::string>& columns)> columns;  ///< called once, first
  std::function<void(const std::vector<results::Value>& row)> row;
};

/// Passes one row per value to `sink`: trial_id, the fields, task, split, metric, step, value. Each
/// trial occurs once, in the order of recording, with the names of its sweeps and variants joined
/// by ", ". An undefined value is NULL. Throws std::invalid_argument as check_names() and
/// explain_nothing().
void each_value(const results::ScoreReader& reader, const ValuesRequest& request,
                const ValueSink& sink);

/// Throws std::invalid_argument for a metric that no trial has reported, and for a split that is
/// unknown and not reported: `unknown metric "acc"; did you mean "accuracy"?`.
void check_names(const results::ScoreReader& reader, const std::vector<std::string>& metrics,
                 const std::vector<std::string>& splits);

}  // namespace petlab::questions
