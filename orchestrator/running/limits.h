#pragma once

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Watches the clock for workers: --time-limit, --no-progress-limit, the grace of those that were
/// asked to end, and silence that a user should hear of.
class Limits {
 public:
  Limits(RunContext& context, SlotTable& slots)
      : context_(context), slots_(slots), checked_(context.loop.now()) {}
  void check();

 private:
  void check(WorkerSlot& slot, EventLoop::Time now, EventLoop::Clock::duration passed);
  void tell_of_silence(LiveAttempt& front, EventLoop::Time now);

  RunContext& context_;
  SlotTable& slots_;
  EventLoop::Time checked_;
};

}  // namespace petlab::orchestrator
