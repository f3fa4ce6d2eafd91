#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/connection.h"
#include "results/scores.h"

namespace petlab::results::internal {

/// The definition of which value of a metric counts (docs/reference/sql.md), in SQL: triggers
/// update `selected_values` whenever a trial's result changes. Creates the tables and triggers if
/// they are missing.
extern const char* const kSelectedTables;
/// The SELECT of the view `counted_values`, which the triggers read: all values of the attempts of
/// a trial's result.
extern const char* const kCountedView;
/// For trial `t`: the step of its result's selected scores, or NULL.
extern const char* const kSelectedStep;
/// Whether a score of series `s` counts for trial `t`: its task is one of the trial's, or no
/// trial's.
extern const char* const kTaskBelongs;

/// Refills the tables.
void fill_selected_values(Connection& connection);

/// All splits, tasks and metrics of the database, by name.
std::vector<SeriesName> all_series(Connection& connection);

/// The series selected by a question, and which of them count for a trial.
class WantedSeries {
 public:
  WantedSeries(Connection& connection, const std::function<bool(const SeriesName&)>& wanted);
  WantedSeries(const WantedSeries&) = delete;
  WantedSeries& operator=(const WantedSeries&) = delete;

  /// Returns nullptr if the series is not selected, or its task belongs to other trials only.
  /// `tasks` are the trial's, joined by commas. Pointers are ordered by name.
  const SeriesName* find(const std::string& tasks, std::int64_t key) const;

 private:
  std::vector<SeriesName> wanted_;
  std::unordered_map<std::int64_t, std::size_t> places_;
  std::set<std::string, std::less<>> tasks_;  // of all trials
};

}  // namespace petlab::results::internal
