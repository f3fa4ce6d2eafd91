#include "orchestrator/running/run_state.h"

#include "orchestrator/records/attempt_directory.h"

namespace petlab::orchestrator {

void RunState::stop(std::size_t trial, Verdict verdict, EventLoop::Time now) {
  for (LiveAttempt& live : attempts.all()) {
    if (live.trial != trial || live.is_over()) continue;
    live.verdict = verdict;
    if (!live.is_with_worker() || live.worker_ended) continue;
    if (options.workers_stop_trials && request_stop(live.directory)) {
      live.asked_to_stop = now;
    } else {
      slots.at(live.slot).ask_to_stop(now);
    }
  }
}

}  // namespace petlab::orchestrator
