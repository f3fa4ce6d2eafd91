#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/planning/early_stop.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "orchestrator/running/turn.h"

namespace petlab::orchestrator {

/// Stops trials that lose, by the rule of the sweep (planning/early_stop.h) and the scores in the
/// database. A trial is judged after each validation, in the transaction that stores it. Those that
/// a dead run left were stored by its recovery, so they are judged before the trial resumes. Trials
/// that the user let continue after a stop are never stopped again.
class EarlyStops {
 public:
  EarlyStops(RunContext& context, RunState& state);

  /// Judges the trials with new validations, and adds the stops to the changes. Their decisions are
  /// then in the trials' files, synced.
  void judge(const Turn& turn, Changes& changes);
  /// After the commit: asks the workers of these trials to stop.
  void settle(const Changes& changes);
  /// Judges the trials that were interrupted in other runs, and settles those that are stopped.
  void judge_interrupted();

 private:
  struct Trial {
    explicit Trial(ValidationScores of) : reader(std::move(of)) {}

    std::string configuration;  // see ComparedTrial
    std::size_t group = 0;      // trials of a group may be compared
    bool is_opponent = true;
    ValidationScores reader;
    std::vector<std::int64_t> steps;  // of its validations, ascending
    std::vector<Score> scores;
    results::AttemptRef attempt;             // the last one with a validation
    std::vector<std::int64_t> unjudged;      // the steps of its validations that were not judged
    std::optional<std::int64_t> stopped_in;  // the attempt; it is never stopped again
  };

  void load();
  /// Adds the score to the trial's. Returns the number of that validation, from 1.
  static std::size_t add(Trial& trial, const ValidationScore& score);
  bool has_outdated_scores(std::size_t at) const;
  static void drop_after(Trial& trial, std::int64_t step);
  /// Judges the trial after this validation. True if it is stopped, which is added to the changes.
  bool judge(std::size_t trial, const results::AttemptRef& attempt, std::size_t validation,
             Changes& changes);
  /// Writes the decisions of these stops to their files.
  void log_stops(Changes& changes) const;

  RunContext& context_;
  RunState& state_;
  ScoreText text_;
  std::vector<Trial> trials_;  // by the index in the sweep; empty until the first validation
  std::vector<std::int64_t> looked_at_;  // by judge_interrupted(): the last attempt of each trial
  std::int64_t version_ = 0;             // of the database, when scores were loaded
  EventLoop::Time loaded_;
};

}  // namespace petlab::orchestrator
