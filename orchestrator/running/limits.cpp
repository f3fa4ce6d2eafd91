#include "orchestrator/running/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace petlab::orchestrator {
namespace {

// The user is notified of a trial that has reported nothing for this long; after its last step,
// when it should end soon, the delay is shorter.
constexpr auto kSilent = std::chrono::minutes(10);
constexpr auto kSilentAtEnd = std::chrono::seconds(30);

// How long another host may not see a new file of a network file system.
constexpr EventLoop::Clock::duration kAttributeCache = std::chrono::seconds(60);

}  // namespace

void Limits::check() {
  const EventLoop::Time now = context_.loop.now();
  const EventLoop::Clock::duration passed = now - std::exchange(checked_, now);
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.has_live_worker()) check(slot, now, passed);
  }
}

// How long a worker may take to stop a single trial, before it is stopped as a whole. A job may see
// the request only after the file system's attribute cache has expired.
EventLoop::Clock::duration Limits::time_to_stop() const {
  const bool far = context_.launcher.queue() != nullptr;
  return context_.input.options.grace + (far ? kAttributeCache : EventLoop::Clock::duration());
}

void Limits::check(WorkerSlot& slot, EventLoop::Time now, EventLoop::Clock::duration passed) {
  slot.enforce(now, context_.input.options.grace, slot.given.empty());
  if (slot.given.empty()) return;
  LiveAttempt& front = *slot.given.front();
  EventLoop::Time heard;  // when the worker reported something, or began a trial
  for (LiveAttempt* live : slot.given) {
    if (live->began == EventLoop::Time()) continue;
    if (slot.waits()) {  // this time does not count for its trials
      live->began += passed;
      live->reported.heard += passed;
      if (live->asked_to_stop) *live->asked_to_stop += passed;
    } else if (live->asked_to_stop &&
               now - std::max(live->began, *live->asked_to_stop) > time_to_stop()) {
      slot.ask_to_stop(now);
    }
    heard = std::max({heard, live->began, live->reported.heard});
  }
  if (slot.state() == SlotState::stopping) return;
  const RunOptions& options = context_.input.options;
  if (options.time_limit && now - front.began > *options.time_limit) {
    front.verdict = Verdict::timed_out;
    slot.ask_to_stop(now);
  } else if (options.no_progress_limit && now - heard > *options.no_progress_limit) {
    front.verdict = Verdict::stalled;
    slot.kill(now);
  } else if (!slot.waits()) {
    note_silence(front, now - heard);
  }
}

// The first version of a worker often forgets an event, and without --no-progress-limit a run waits
// for it forever.
void Limits::note_silence(LiveAttempt& front, EventLoop::Clock::duration silent) {
  Reported& reported = front.reported;
  const bool all_steps = reported.progress && reported.progress->step >= reported.progress->of;
  const auto most = all_steps ? EventLoop::Clock::duration(kSilentAtEnd) : kSilent;
  if (reported.silence_noted || silent < most) return;
  reported.silence_noted = true;
  context_.observer.note(fmt::format(
      "{}: its worker has reported nothing for {} s{}; a trial ends when its worker writes "
      "finished or failed (docs/reference/worker-protocol.md); --no-progress-limit kills a silent "
      "worker",
      front.attempt.trial_id, std::chrono::duration_cast<std::chrono::seconds>(silent).count(),
      all_steps ? " since its last step" : ""));
}

}  // namespace petlab::orchestrator
