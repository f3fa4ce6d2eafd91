#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/connection.h"
#include "results/scores.h"

namespace petlab::results::internal {

/// Every split, task and metric that the database has, by name.
std::vector<SeriesName> all_series(Connection& connection);

/// The attempts of a trial whose values count, the last one first; without a result, its last
/// attempt. Values up to the event `to` count.
struct CountingAttempt {
  std::int64_t key = 0;
  std::int64_t number = 0;
  std::int64_t to = 0;
};
std::vector<CountingAttempt> counting_attempts(Connection& connection, std::int64_t trial);

/// The one definition of which value of a metric counts (docs/database.md): the value at the
/// selected step. It reads the rows of a trial backwards, and only until it has found all of them.
/// The series must outlive it.
class SelectedScores {
 public:
  /// `tests`: the series of split test whose last report names the selected step.
  SelectedScores(std::vector<const SeriesName*> wanted, std::span<const SeriesName* const> tests);

  /// Forgets what the trial before had.
  void begin();
  /// Takes a row of the trial, the one that was reported last first.
  void take(std::int64_t series, std::int64_t step, std::optional<double> value);
  /// True once no further row can change what was found.
  bool complete() const { return settled_ == found_.size(); }
  bool wants(std::int64_t series) const { return places_.contains(series); }
  std::optional<std::int64_t> selected_step() const { return selected_; }
  /// In the order of the wanted series, those that the trial reported.
  std::vector<Score> scores() const;

 private:
  struct Found {
    std::optional<Score> score;
    bool settled = false;
    /// By step, the last value at each, as long as the selected step is not known.
    std::map<std::int64_t, std::optional<double>> candidates;
  };
  void settle(Found& found);

  std::vector<const SeriesName*> wanted_;
  std::unordered_map<std::int64_t, std::size_t> places_;
  std::set<std::int64_t> tests_;
  std::vector<Found> found_;  // by place
  std::optional<std::int64_t> selected_;
  std::size_t settled_ = 0;
};

/// The series that a question wants, and which of them belong to a trial with certain tasks: those
/// of its own tasks, and of tasks that no trial has.
class WantedSeries {
 public:
  WantedSeries(Connection& connection, const std::function<bool(const SeriesName&)>& wanted);
  WantedSeries(const WantedSeries&) = delete;
  WantedSeries& operator=(const WantedSeries&) = delete;

  /// `tasks` are joined by commas.
  SelectedScores& of(const std::string& tasks);
  /// The series of split test of such a trial.
  std::vector<const SeriesName*> tests_of(const std::string& tasks);
  /// A JSON array of the keys of all series that SelectedScores may need.
  std::string keys() const;
  /// Throws std::out_of_range for a key that the database did not have.
  const SeriesName& at(std::int64_t key) const { return *by_key_.at(key); }

 private:
  bool belongs_to(const std::string& tasks, const SeriesName& series);

  Connection& connection_;
  std::vector<SeriesName> all_;
  std::unordered_map<std::int64_t, const SeriesName*> by_key_;
  std::vector<const SeriesName*> wanted_;
  std::unordered_map<std::string, bool> owned_;  // by task: some trial has it
  std::unordered_map<std::string, SelectedScores> by_tasks_;
};

}  // namespace petlab::results::internal
