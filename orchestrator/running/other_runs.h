#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "orchestrator/recovery/recovery.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

/// What happens to the sweep's trials outside this run: other orchestrators run some and may die,
/// users cancel and retry.
class OtherRuns {
 public:
  OtherRuns(RunContext& context, TrialTable& trials)
      : context_(context),
        trials_(trials),
        recovery_(context.store, context.ingest, context.options.runs, context.options.grace) {}

  /// Begins with what the dead have left.
  void start();
  /// When clear_up() and look() have something to see that tells nobody; absent: nothing is waited
  /// for.
  std::optional<EventLoop::Time> next_look(const Course& course) const;
  /// Clears up after those that died since; true where attempts of theirs are over now.
  bool clear_up();
  /// Settles the trials elsewhere that are over there. `idle`: this run has nothing to do itself;
  /// where it waits for others of which nothing can be known from here it then ends.
  void look(bool cleared_up, bool idle, Course& course, NextCommit& next);
  /// Workers of dead orchestrators are asked to end, and are not gone yet.
  bool recovery_under_way() const { return recovery_.under_way(); }

  /// Looks at what users have decided since; `cancel_assigned` stops an attempt of this run.
  void look_at_decisions(const std::function<void(std::size_t trial)>& cancel_assigned);

 private:
  void plan_elsewhere();
  void decided(std::size_t trial, const results::Decided& now,
               const std::function<void(std::size_t)>& cancel_assigned);

  RunContext& context_;
  TrialTable& trials_;
  Recovery recovery_;
  EventLoop::Time looked_;
  EventLoop::Time planned_;
  std::int64_t seen_version_ = 0;
  std::size_t unknown_ = 0;  // of those elsewhere: on other hosts or in a queue
  std::string unknown_hint_;
  std::int64_t decisions_version_ = -1;
};

}  // namespace petlab::orchestrator
