#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

void RunState::cancel(std::size_t trial, EventLoop::Time now) {
  for (LiveAttempt& live : attempts.all()) {
    if (live.trial != trial || live.is_over()) continue;
    live.verdict = Verdict::cancelled;
    if (live.is_with_worker() && !live.worker_ended) slots.at(live.slot).ask_to_stop(now);
  }
}

}  // namespace petlab::orchestrator
