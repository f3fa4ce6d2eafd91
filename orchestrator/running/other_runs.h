#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orchestrator/recovery/recovery.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

/// Follows what happens to the sweep's trials outside this run: other orchestrators run some and
/// may die, and users cancel and retry trials.
class OtherRuns {
 public:
  OtherRuns(RunContext& context, RunState& state)
      : context_(context),
        state_(state),
        recovery_(context.store, context.ingest, context.input.options.runs,
                  context.input.options.grace) {}

  /// Reads the inbox, and begins to clean up after dead orchestrators.
  void start();
  /// When to call clear_up() and look() next, for changes that no event reports; absent if there is
  /// nothing to wait for.
  std::optional<EventLoop::Time> next_look() const;
  /// Cleans up after orchestrators that have died since; true if attempts of theirs are now over.
  bool clear_up();
  /// Settles trials whose attempts by other orchestrators are over. Ends a run that has no attempts
  /// itself and only waits for trials whose state it cannot determine.
  void look(bool cleared_up);
  /// True while workers of dead orchestrators have been asked to end and are not gone.
  bool recovery_under_way() const { return recovery_.under_way(); }

  /// Applies the users' decisions since the last call.
  void look_at_decisions();

 private:
  void plan_elsewhere();
  void decided(std::size_t trial, const results::Decided& now);

  RunContext& context_;
  RunState& state_;
  Recovery recovery_;
  EventLoop::Time looked_;
  EventLoop::Time planned_;
  std::int64_t seen_version_ = 0;
  std::size_t unknown_ = 0;  // trials elsewhere whose state cannot be determined
  std::string unknown_hint_;
  std::int64_t decisions_version_ = -1;
};

}  // namespace petlab::orchestrator
