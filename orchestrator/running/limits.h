#pragma once

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Enforces the time limits of workers: --time-limit, --no-progress-limit and the grace period of
/// those that were asked to end, or to stop a trial. Also notifies the user of silent workers.
class Limits {
 public:
  Limits(RunContext& context, RunState& state)
      : context_(context), state_(state), checked_(context.loop.now()) {}
  void check();

 private:
  void check(WorkerSlot& slot, EventLoop::Time now, EventLoop::Clock::duration passed);
  EventLoop::Clock::duration time_to_stop() const;
  void note_silence(LiveAttempt& front, EventLoop::Clock::duration silent);

  RunContext& context_;
  RunState& state_;
  EventLoop::Time checked_;
};

}  // namespace petlab::orchestrator
