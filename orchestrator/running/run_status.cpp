#include "orchestrator/running/run_status.h"

#include <algorithm>

namespace petlab::orchestrator {

using sweeps::TrialState;

namespace {

double in_seconds(EventLoop::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

RunningTrial running_trial(const RunContext& context, const TrialTable& trials,
                           const LiveAttempt& live) {
  const EventLoop::Time now = context.loop.now();
  const Reported& reported = live.reported;
  RunningTrial running;
  running.trial_id = live.attempt.trial_id;
  running.attempt = live.attempt.number;
  for (const std::string& variant : trials.at(live.trial).what->variants) {
    running.variant += (running.variant.empty() ? "" : ", ") + variant;
  }
  running.sweep = context.input.sweep.name;
  running.slot = live.slot;
  running.host = live.launch.host;
  if (running.host.empty() && context.launcher.queue() == nullptr) running.host = context.here.host;
  running.doing = live.state() != AttemptState::begun ? "starting"
                  : !reported.progress                ? "loading"
                                                      : "training";
  running.best = reported.best.value();
  if (reported.device_memory_mib > 0) running.device_memory_mib = reported.device_memory_mib;
  running.seconds = in_seconds(now - live.began);
  const std::optional<double> expected = trials.schedule().trial(live.trial).expected_seconds;
  if (!reported.progress) {
    running.seconds_left = seconds_left(0, 0, 0, running.seconds, expected);
    return running;
  }
  running.step = reported.progress->step;
  running.of = reported.progress->of;
  running.loss = reported.progress->loss;
  running.seconds_left =
      seconds_left(running.step, running.of, reported.first_step,
                   in_seconds(reported.progress_at - reported.started_at), expected);
  if (running.seconds_left) {
    *running.seconds_left =
        std::max(0.0, *running.seconds_left - in_seconds(now - reported.progress_at));
  }
  return running;
}

}  // namespace

RunStatus status_of(const RunContext& context, const RunState& state, std::int64_t finished_here) {
  const TrialTable& trials = state.trials;
  RunStatus status;
  status.total = static_cast<std::int64_t>(trials.size());
  status.cached = trials.count(TrialState::cached);
  status.stale = trials.count(TrialState::stale);
  status.done = trials.count(TrialState::done) + status.cached + status.stale;
  status.failed = trials.count(TrialState::failed);
  status.cancelled = trials.count(TrialState::cancelled);
  status.stopped = trials.count(TrialState::stopped);
  status.elsewhere = static_cast<std::int64_t>(trials.elsewhere().size());
  status.finished_here = finished_here;
  for (const auto& [name, slot] : state.slots.all()) {
    if (slot.given.empty()) continue;
    // A queue may hold a thousand waiting jobs, which are only counted as waiting.
    if (slot.waits() && !slot.served.begun) continue;
    for (const LiveAttempt* live : slot.given) {
      // Those behind the front run in a gang, or wait.
      const bool runs = live == slot.given.front() || (context.input.options.most_in_gang > 1 &&
                                                       live->state() == AttemptState::begun);
      if (!runs) continue;
      RunningTrial running = running_trial(context, trials, *live);
      if (slot.has_worker() && slot.worker().suspended()) running.doing = "suspended";
      if (slot.state() == SlotState::stopping || live->asked_to_stop) running.doing = "stopping";
      status.trials.push_back(std::move(running));
    }
  }
  status.running = static_cast<std::int64_t>(status.trials.size());
  status.waiting = status.total - status.over() - status.elsewhere - status.running;
  return status;
}

}  // namespace petlab::orchestrator
