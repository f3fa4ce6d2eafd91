#include "orchestrator/running/worker_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/invariant.h"

namespace petlab::orchestrator {
namespace {

// Claims run ahead of a worker by about this much work, so that it never waits for a commit. Longer
// trials are claimed one at a time, so that any slot that becomes free can take them.
constexpr double kAheadSeconds = 0.05;
// A job gets its next attempt through files, which other hosts see seconds later. In return, trials
// of a minute and more are not claimed ahead.
constexpr double kAheadOfJobSeconds = 2;
constexpr double kLongTrialSeconds = 60;
constexpr double kMostAhead = 64;

}  // namespace

bool EndedWorker::is_clean() const {
  const Exited* exited = std::get_if<Exited>(&end.how);
  return exited != nullptr && exited->code == 0 && !asked_to_stop && given.size() <= 1;
}

void Pace::learn(EventLoop::Time now) {
  if (overs_ == 0) return;
  const double seconds = std::chrono::duration<double>(now - last_over_).count() / overs_;
  const double weight = mean_seconds_ ? 1 - std::pow(0.7, overs_) : 1;
  mean_seconds_ = (1 - weight) * mean_seconds_.value_or(0) + weight * seconds;
  overs_ = 0;
  last_over_ = now;
}

void WorkerSlot::collect_end(bool retire) {
  if (state() != SlotState::ended) return;
  End end = take_end();
  for (LiveAttempt* live : given) live->worker_ended = true;
  if (!given.empty()) {
    // The worker was last seen at this attempt. This is decided here, because the events of later
    // attempts may be read before those of this one.
    end.how.lines_by_log.try_emplace(given.front()->directory.log(), end.how.last_lines);
    ended.push_back({std::exchange(given, {}), std::move(end.how), std::move(end.job), served,
                     end.was_stopped});
  } else if (kind_.is_job && !served.given && end.was_serving) {
    // Nobody asked the job to end, and it took no attempt: its end is the launch's.
    ended.push_back({{}, std::move(end.how), std::move(end.job), served, false});
  }
  served = {};
  group.clear();
  health.retired = health.retired || retire;
  share.to_reserve.reset();
}

// A job usually gets attempts once it has begun, so that none waits with it in the queue.
bool WorkerSlot::takes_attempts() const {
  return kind_.ahead ? has_worker() && !worker().launch().job.empty() : !waits();
}

bool WorkerSlot::takes_claims(const Schedule& schedule, EventLoop::Time now) const {
  bool open = state() == SlotState::empty || state() == SlotState::serving;
  if (kind_.is_job) {
    open = state() == SlotState::serving && takes_attempts() &&
           !(kind_.takes_one && served.given) && !ends_too_soon(now);
  }
  return open && !health.broken && !health.retired && !health.barred && health.not_before <= now &&
         all_ends_clean() && std::none_of(given.begin(), given.end(), [&](const LiveAttempt* live) {
           return schedule.trial(live->trial).alone;
         });
}

void WorkerSlot::give(LiveAttempt& live, EventLoop::Time now) {
  // What a job waited in the queue is no time of its trials.
  if (kind_.is_job && !served.given) pace.worker_begins(now);
  given.push_back(&live);
  served.given = true;
}

bool WorkerSlot::wants_job(EventLoop::Time now) const {
  return kind_.is_job && state() == SlotState::empty && !health.broken && !health.retired &&
         health.not_before <= now && ended.empty();
}

bool WorkerSlot::ends_too_soon(EventLoop::Time now) const {
  // A job's first trial may resume what earlier jobs had no time to finish.
  if (!has_worker() || !served.given || !pace.mean_seconds()) return false;
  const auto ends = worker().ends_by();
  const std::chrono::duration<double> needed(*pace.mean_seconds() *
                                             static_cast<double>(line() + 1));
  return ends && now + std::chrono::duration_cast<EventLoop::Clock::duration>(needed) > *ends;
}

bool WorkerSlot::all_ends_clean() const {
  return std::all_of(ended.begin(), ended.end(),
                     [](const EndedWorker& worker) { return worker.is_clean(); });
}

const EndedWorker& WorkerSlot::ended_with(const LiveAttempt& live) const {
  return *std::find_if(ended.begin(), ended.end(), [&](const EndedWorker& worker) {
    return std::find(worker.given.begin(), worker.given.end(), &live) != worker.given.end();
  });
}

EndedWorker& WorkerSlot::ended_with(const LiveAttempt& live) {
  return const_cast<EndedWorker&>(std::as_const(*this).ended_with(live));
}

WorkerSlot& SlotTable::add(const std::string& name, std::int64_t gpus) {
  const auto [slot, is_new] = slots_.try_emplace(
      name, name, launcher_.device(name).uuid, loop_.now(),
      SlotKind{launcher_.queue() != nullptr, !launcher_.workers_stay(), ahead_}, gpus);
  PETLAB_INVARIANT(is_new, fmt::format("slot {} is held twice", name));
  return slot->second;
}

WorkerSlot* SlotTable::find(const std::string& name) {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : &found->second;
}

void SlotTable::release(const std::string& name) {
  launcher_.release_slot(name);
  slots_.erase(name);
}

void SlotTable::release_all() {
  for (auto& [name, slot] : slots_) {
    slot.drop_worker();
    launcher_.release_slot(name);
  }
  slots_.clear();
}

std::size_t SlotTable::equal_part(const Schedule& schedule, std::int64_t gpus) const {
  auto trials = static_cast<std::size_t>(schedule.waiting(gpus));
  std::size_t jobs = 0;
  for (const auto& [name, slot] : slots_) {
    const bool open = slot.state() == SlotState::empty || slot.state() == SlotState::serving;
    if (!open || slot.health.broken || slot.gpus != gpus) continue;
    trials += slot.line();
    ++jobs;
  }
  return launcher_.workers_stay() && jobs > 0 ? (trials + jobs - 1) / jobs : 1;
}

std::size_t SlotTable::line_length(const WorkerSlot& slot, const Schedule& schedule) const {
  if (ahead_) return equal_part(schedule, slot.gpus);
  if (most_in_gang_ > 1) {
    if (slot.line() > 0) return slot.line();
    return std::clamp<std::size_t>(equal_part(schedule, slot.gpus), 1, most_in_gang_);
  }
  if (!slot.pace.mean_seconds()) return 1;
  const double mean = std::max(*slot.pace.mean_seconds(), 1e-6);
  double ahead = std::ceil(kAheadSeconds / mean);
  if (launcher_.queue() != nullptr && launcher_.workers_stay() && mean < kLongTrialSeconds) {
    ahead = 1 + std::ceil(kAheadOfJobSeconds / mean);
  }
  const double fair =
      static_cast<double>(schedule.waiting(slot.gpus)) / static_cast<double>(slots_.size());
  return static_cast<std::size_t>(std::max(1.0, std::min({ahead, fair, kMostAhead})));
}

void SlotTable::front_changed(WorkerSlot& slot) {
  report_front(slot);
  if (slot.given.empty() || !slot.has_worker()) return;
  LiveAttempt& front = *slot.given.front();
  if (front.began == EventLoop::Time()) front.began = front.reported.heard = loop_.now();
  slot.worker().log_to(front.directory.log());
}

// A worker may free memory between two trials, so its report for the previous trial is worthless.
// Until it reports again, its memory counts as that of other processes.
void SlotTable::report_front(const WorkerSlot& slot) {
  SharedDevices* shared = launcher_.shared_devices();
  if (shared == nullptr) return;
  const double reported =
      slot.given.empty() || !slot.has_worker() ? 0 : slot.given.front()->reported.device_memory_mib;
  shared->report_memory(slot.name, static_cast<std::int64_t>(std::ceil(reported)));
}

}  // namespace petlab::orchestrator
