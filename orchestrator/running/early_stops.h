#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/planning/early_stop.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/changes.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Stops trials that lose, by the rule of the sweep (planning/early_stop.h) and the scores in the
/// database. A trial is judged when a validation of it is stored, in the same transaction. What a
/// dead run left is stored without it, so an interrupted trial is judged before it resumes, at its
/// last validation. Trials that the user let continue after a stop are never stopped again.
class EarlyStops {
 public:
  EarlyStops(RunContext& context, RunState& state);

  /// Judges the trials with new validations, and adds the stops to the changes. Their decisions are
  /// then in the trials' files, synced.
  void judge(Changes& changes);
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
    bool exempt = false;
  };

  void load();
  /// Adds the score to the trial's. Returns the number of that validation, from 1.
  static std::size_t add(Trial& trial, const ValidationScore& score);
  using Decisions = std::vector<std::pair<std::string, protocol::Decision>>;
  /// Adds a decision if the trial is to be stopped by one of its validations.
  bool judge(std::size_t trial, std::int64_t attempt, std::span<const std::size_t> validations,
             Decisions& decisions);
  std::optional<std::string> why_stopped(std::size_t trial,
                                         std::span<const std::size_t> validations) const;

  RunContext& context_;
  RunState& state_;
  ScoreText text_;
  std::vector<Trial> trials_;         // by the index in the sweep; empty until the first validation
  std::vector<std::int64_t> judged_;  // the last attempt of each trial that was judged
  std::int64_t version_ = 0;          // of the database, when scores were loaded
  EventLoop::Time loaded_;
};

}  // namespace petlab::orchestrator
