#pragma once

#include <cstddef>

#include "orchestrator/running/code_watch.h"
#include "orchestrator/running/live_attempts.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// What the parts of a run know together, and all of them change.
struct RunState {
  explicit RunState(RunContext& context)
      : options(context.input.options),
        code(context, course),
        trials(context),
        attempts(context.loop),
        slots(context.launcher, context.loop, context.input.options.detach,
              context.input.options.most_in_gang) {}
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  const RunOptions& options;
  Course course;
  CodeWatch code;
  TrialTable trials;
  LiveAttempts attempts;
  SlotTable slots;
  /// Another orchestrator claimed a trial first. It may have finished before the last check, so
  /// that no further write would announce it: its result is looked up anyway.
  bool claim_lost = false;

  /// Stops an attempt that this run has of the trial, which ends by that verdict. A worker that can
  /// stops this trial alone. Another stops as a whole: its other trials resume from their
  /// checkpoints.
  void stop(std::size_t trial, Verdict verdict, EventLoop::Time now);
};

}  // namespace petlab::orchestrator
