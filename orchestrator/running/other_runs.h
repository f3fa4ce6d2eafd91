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

/// Follows what happens to the sweep's trials outside this run: other orchestrators run some and
/// may die, and users cancel and retry trials.
class OtherRuns {
 public:
  OtherRuns(RunContext& context, TrialTable& trials)
      : context_(context),
        trials_(trials),
        recovery_(context.store, context.ingest, context.options.runs, context.options.grace) {}

  /// Reads the inbox, and begins to clean up after dead orchestrators.
  void start();
  /// When to call clear_up() and look() next, for changes that no event reports; absent if there is
  /// nothing to wait for.
  std::optional<EventLoop::Time> next_look(const Course& course) const;
  /// Cleans up after orchestrators that have died since; true if attempts of theirs are now over.
  bool clear_up();
  /// Settles trials whose attempts by other orchestrators are over. `idle`: this run has no
  /// attempts itself; if it only waits for trials whose state it cannot determine, this ends it.
  void look(bool cleared_up, bool idle, Course& course, NextCommit& next);
  /// True while workers of dead orchestrators have been asked to end and are not gone.
  bool recovery_under_way() const { return recovery_.under_way(); }

  /// Applies the users' decisions since the last call. `cancel_assigned` stops an attempt of this
  /// run.
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
  std::size_t unknown_ = 0;  // trials elsewhere whose state cannot be determined
  std::string unknown_hint_;
  std::int64_t decisions_version_ = -1;
};

}  // namespace petlab::orchestrator
