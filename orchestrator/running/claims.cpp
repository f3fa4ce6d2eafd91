#include "orchestrator/running/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/machine.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/running/preparation.h"
#include "protocol/attempt_log.h"

namespace petlab::orchestrator {

namespace {

// No event reports that a slot has become free, so free slots are polled.
constexpr auto kLookForSlots = std::chrono::milliseconds(200);
constexpr std::int64_t kMostWaitingJobs = 4;  // or as many as run

}  // namespace

std::int64_t Claims::slots_missing_for(std::int64_t gpus, EventLoop::Time now) const {
  const auto idle =
      std::count_if(state_.slots.all().begin(), state_.slots.all().end(), [&](const auto& entry) {
        const WorkerSlot& slot = entry.second;
        return slot.gpus == gpus && slot.line() == 0 && !slot.health.broken &&
               !slot.health.barred && !slot.is_lost() && slot.health.not_before <= now;
      });
  return state_.trials.schedule().waiting(gpus) - idle;
}

std::int64_t Claims::slots_missing(EventLoop::Time now) const {
  std::int64_t missing = 0;
  for (const auto& [gpus, waiting] : state_.trials.schedule().waiting_by_gpus()) {
    missing += std::max<std::int64_t>(0, slots_missing_for(gpus, now));
  }
  missing = std::min(missing, context_.input.options.slots - state_.slots.size());
  if (context_.launcher.queue() == nullptr || !context_.launcher.workers_stay() ||
      context_.input.options.detach) {
    return missing;
  }
  // Jobs stay, so no more of them wait in the queue than the cluster has shown to run. Their number
  // is whole.
  const std::int64_t waiting = std::count_if(
      state_.slots.all().begin(), state_.slots.all().end(),
      [](const auto& entry) { return !entry.second.has_worker() || entry.second.waits(); });
  const std::int64_t of_job = context_.launcher.queue()->workers_of_job();
  const std::int64_t more =
      std::max(kMostWaitingJobs * of_job, state_.slots.size() - waiting) - waiting;
  return std::min(missing, more - more % of_job);
}

std::int64_t Claims::gpus_missing(EventLoop::Time now) const {
  std::int64_t slots = std::max<std::int64_t>(0, slots_missing(now));
  std::int64_t gpus = 0;
  for (const auto& [size, waiting] : state_.trials.schedule().waiting_by_gpus()) {
    const std::int64_t more = std::clamp<std::int64_t>(slots_missing_for(size, now), 0, slots);
    slots -= more;
    gpus += more * size;
  }
  return gpus;
}

void Claims::acquire_slots(const std::function<bool()>& may_take, bool alone) {
  guard_.bar_slots();
  leave_impossible();
  if (shares_) {
    if (shares_->acquire(may_take)) forget_fruitless();
    return;
  }
  const EventLoop::Time now = context_.loop.now();
  Schedule& schedule = state_.trials.schedule();
  const std::optional<std::size_t> best = schedule.best(now, {});
  const std::int64_t first = best ? schedule.trial(*best).gpus : 0;
  if (!alone || makes_room_ != first || has_slots(first)) makes_room_ = 0;
  std::int64_t missing = slots_missing(now);
  const bool is_stuck = first != 0 && makes_room_ == 0 && !has_slots(first);
  if ((missing <= 0 && !is_stuck) || now - looked_for_slots_ < kLookForSlots) return;
  looked_for_slots_ = now;
  // The first trial's size goes first. Trials of other sizes get what it leaves.
  std::vector<std::int64_t> sizes;
  for (const auto& [gpus, waiting] : schedule.waiting_by_gpus()) sizes.insert(sizes.begin(), gpus);
  std::stable_partition(sizes.begin(), sizes.end(),
                        [first](std::int64_t gpus) { return gpus == first; });
  for (const std::int64_t gpus : sizes) {
    for (std::int64_t more = slots_missing_for(gpus, now); more > 0 && missing > 0; --more) {
      if (!may_take()) return;
      const std::optional<std::string> name = context_.launcher.acquire_slot(gpus);
      if (!name) break;
      state_.slots.add(*name, gpus);
      --missing;
    }
    if (alone && gpus == first && !has_slots(gpus)) {
      makes_room_ = gpus;
      return;
    }
  }
}

// Leaves trials with more GPUs than this run can still use. Otherwise the run would make room for
// them for ever.
void Claims::leave_impossible() {
  const auto& by_gpus = state_.trials.schedule().waiting_by_gpus();
  if (by_gpus.empty() || by_gpus.rbegin()->first == 1 || context_.launcher.queue() != nullptr) {
    return;
  }
  auto left = static_cast<std::int64_t>(context_.launcher.devices());
  for (const auto& [name, slot] : state_.slots.all()) {
    if (slot.health.broken || slot.is_lost()) left -= guard_.enabled_gpus(slot);
  }
  left = std::max<std::int64_t>(left, 1);
  if (by_gpus.rbegin()->first <= left) return;
  const std::int64_t number = state_.trials.leave_larger(left);
  if (number == 0) return;
  const std::string message =
      fmt::format("skipped {} trial(s) that need more GPUs than the {} that this run can still use",
                  number, left);
  context_.observer.note(message);
  if (state_.course.left.empty()) state_.course.left = message;
}

bool Claims::has_slots(std::int64_t gpus) const {
  return state_.slots.any([gpus](const WorkerSlot& slot) {
    return slot.gpus == gpus && !slot.health.broken && !slot.is_lost();
  });
}

void Claims::start_jobs(EventLoop::Time now) {
  if (context_.launcher.queue() == nullptr || !state_.course.claiming()) return;
  for (auto& [name, slot] : state_.slots.all()) {
    const bool work = state_.trials.schedule().waiting(slot.gpus) > 0 || !slot.ready.empty();
    if (!work || !slot.wants_job(now)) continue;
    std::string code = state_.code.capture();
    if (!state_.course.claiming()) return;  // the code changed
    slot.serve(context_.launcher.start(
                   name, {}, [&slot = slot](WorkerEnd end) { slot.report_end(std::move(end)); }),
               std::move(code));
  }
}

std::optional<EventLoop::Time> Claims::next_chance(EventLoop::Time now) const {
  std::optional<EventLoop::Time> chance;
  const auto earliest = [&chance](EventLoop::Time time) {
    if (!chance || time < *chance) chance = time;
  };
  if (!state_.course.claiming() || state_.trials.schedule().waiting() == 0) return chance;
  const EventLoop::Time ready = *state_.trials.schedule().next_ready();
  if (ready > now) earliest(ready);
  if (slots_missing(now) > 0) {
    earliest((shares_ ? shares_->looked() : looked_for_slots_) + kLookForSlots);
  }
  for (const auto& [name, slot] : state_.slots.all()) {
    if (slot.health.not_before > now) earliest(slot.health.not_before);
  }
  return chance;
}

bool Claims::can_claim(EventLoop::Time now, bool news) const {
  if (!news && fruitless_since_ == state_.trials.additions()) return false;
  const auto ready = state_.trials.schedule().next_ready();
  return state_.course.claiming() && ready && *ready <= now &&
         state_.slots.any([&](const WorkerSlot& slot) {
           return state_.trials.schedule().waiting(slot.gpus) > 0 && !is_to_make_room(slot) &&
                  slot.takes_claims(state_.trials.schedule(), now) &&
                  slot.line() < state_.slots.line_length(slot, state_.trials.schedule());
         });
}

// An attempt with news may be over already, so only attempts without news count as work.
bool Claims::runs_dry(EventLoop::Time now) const {
  return state_.slots.any([&](const WorkerSlot& slot) {
    if (!slot.takes_claims(state_.trials.schedule(), now)) return false;
    const auto silent =
        std::count_if(slot.given.begin(), slot.given.end(),
                      [this](const LiveAttempt* live) { return !state_.attempts.has_news(*live); });
    return 4 * (static_cast<std::size_t>(silent) + slot.ready.size()) <=
           state_.slots.line_length(slot, state_.trials.schedule());
  });
}

void Claims::choose(Choice& chosen, EventLoop::Time now) {
  if (!state_.course.claiming()) return;
  guard_.bar_slots();
  if (shares_) {
    shares_->choose(chosen, now);
    return;
  }
  Schedule& schedule = state_.trials.schedule();
  // Equal parts are those of the trials that wait before any slot gets its own.
  std::vector<std::pair<WorkerSlot*, std::size_t>> lengths;
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.takes_claims(schedule, now) && !is_to_make_room(slot)) {
      lengths.emplace_back(&slot, state_.slots.line_length(slot, schedule));
    }
  }
  for (const auto& [chooser, most] : lengths) {
    WorkerSlot& slot = *chooser;
    std::size_t line = slot.line();
    std::vector<std::size_t> gang;
    while (line < most) {
      const std::optional<std::size_t> trial =
          schedule.take(slot.group, line > 0, now, [&](std::size_t candidate) {
            return schedule.trial(candidate).gpus == slot.gpus &&
                   guard_.may_have(slot, candidate) && gangs_.may_join(gang, candidate, slot);
          });
      if (!trial) break;
      chosen.emplace_back(&slot, *trial);
      gang.push_back(*trial);
      slot.group = schedule.trial(*trial).group;
      ++line;
      if (schedule.trial(*trial).alone) break;
    }
  }
}

std::vector<std::int64_t> Claims::next_numbers(const Choice& chosen) const {
  std::vector<std::int64_t> numbers;
  for (const auto& [slot, trial] : chosen) {
    numbers.push_back(
        highest_attempt_directory(context_.input.options.runs, state_.trials.at(trial).id()) + 1);
  }
  return numbers;
}

void Claims::claim(const Choice& chosen, const std::vector<std::int64_t>& at_least,
                   results::Batch& batch) {
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    claim_one(*chosen[at].first, chosen[at].second, at_least[at], batch);
  }
}

// Cached: a run has few devices, and querying one reads files of the kernel. Of several GPUs, the
// first counts.
const std::string& Claims::provenance_on(const std::string& gpu) {
  const auto [known, is_new] = provenance_.try_emplace(gpu, context_.input.options.provenance);
  if (!is_new || gpu.empty() || known->second.empty()) return known->second;
  nlohmann::ordered_json all = nlohmann::ordered_json::parse(known->second);
  if (const std::string model = base::gpu_model(gpu.substr(0, gpu.find(','))); !model.empty())
    all["gpu"] = model;
  return known->second = all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Claims::claim_one(WorkerSlot& slot, std::size_t trial, std::int64_t at_least,
                       results::Batch& batch) {
  const TrialPlan& plan = state_.trials.at(trial).plan;
  const std::string& id = state_.trials.at(trial).id();
  results::NewAttempt begun;
  begun.trial_id = id;
  begun.planned_from = plan.planned_from;
  begun.at_least = at_least;
  begun.resume = plan.resume;
  if (begun.resume) begun.resume->checkpoint = protocol::kept_checkpoint(begun.resume->checkpoint);
  begun.sweep = context_.input.sweep.name;
  begun.owner = context_.input.options.owner;
  if (context_.launcher.queue() == nullptr) {
    begun.host = context_.here.host;
    begun.boot_id = context_.here.boot_id;
    begun.pid_namespace = context_.here.pid_namespace;
  }
  begun.device = slot.name;
  begun.launcher = context_.launcher.kind();
  begun.commit = context_.input.options.petlab_version;
  begun.provenance = provenance_on(context_.launcher.device(slot.name).uuid);
  begun.retries = plan.retries;
  begun.time = context_.loop.wall_seconds();
  const results::Claim claim = batch.begin_attempt(begun);
  const results::AttemptRef* attempt = std::get_if<results::AttemptRef>(&claim);
  if (attempt == nullptr) {
    state_.trials.settle_elsewhere(trial);
    state_.claim_lost = true;
    return;
  }
  LiveAttempt& live = state_.attempts.add(
      protocol::TrialDirectory(context_.input.options.runs, id, attempt->number), *attempt,
      state_.trials.metric_of(trial), AttemptState::claimed);
  context_.ingest.expect(batch, live.attempt);
  live.begun = begun;
  live.trial = trial;
  live.slot = slot.name;
  state_.trials.settle_assigned(trial);
  slot.ready.push_back(&live);
}

bool Claims::prepare_one() {
  if (!state_.course.claiming()) return false;
  for (auto& [name, slot] : state_.slots.all()) {
    for (LiveAttempt* live : slot.ready) {
      if (live->state() != AttemptState::claimed) continue;
      prepare(context_, state_, *live);
      return true;
    }
  }
  return false;
}

std::optional<std::string> Claims::give(WorkerSlot& slot) {
  const bool is_queue = context_.launcher.queue() != nullptr;
  const bool open =
      (slot.state() == SlotState::empty && !is_queue) || slot.state() == SlotState::serving;
  // A job that Slurm has taken back to its queue takes nothing, even if claims were made for it.
  if (!open || !slot.takes_attempts() || !slot.all_ends_clean()) return std::nullopt;
  while (!slot.ready.empty() &&
         (!slot.has_worker() || is_queue || context_.launcher.workers_stay())) {
    const std::size_t size = context_.input.options.most_in_gang > 1 ? slot.ready.size() : 1;
    const std::vector<LiveAttempt*> together(slot.ready.begin(), slot.ready.begin() + size);
    std::vector<std::filesystem::path> folders;
    for (LiveAttempt* live : together) {
      if (!is_prepared(slot, *live)) return std::nullopt;
      folders.push_back(live->directory.folder());
    }
    if (slot.has_worker()) {
      slot.worker().submit(folders);
    } else {
      if (slot.health.not_before > context_.loop.now()) return std::nullopt;
      std::string code = state_.code.capture();
      if (!state_.course.claiming()) return std::nullopt;  // the code changed
      try {
        slot.serve(
            context_.launcher.start(slot.name, folders,
                                    [&slot](WorkerEnd end) { slot.report_end(std::move(end)); }),
            std::move(code));
      } catch (const Error& error) {
        return error.what();
      }
    }
    fault_point("given");
    for (LiveAttempt* live : together) {
      live->in_gang = size > 1;
      hand_over(slot, *live);
    }
    if (slot.given.front() == together.front()) state_.slots.front_changed(slot);
  }
  return std::nullopt;
}

// Makes a claimed attempt's directory, unless the worker is busy: for that, prepare_one() creates
// directories one by one, and the loop handles other events in between. Returns false if the
// attempt cannot be given now.
bool Claims::is_prepared(WorkerSlot& slot, LiveAttempt& live) {
  if (reaches_no_worker(state_, guard_, slot, live)) return false;
  if (live.state() == AttemptState::claimed) {
    if (!slot.given.empty()) return false;
    prepare(context_, state_, live);
  }
  return live.state() != AttemptState::vanished;
}

// Records that the slot's worker has the attempt, the first of those that are ready.
void Claims::hand_over(WorkerSlot& slot, LiveAttempt& live) {
  slot.ready.pop_front();
  slot.give(live, context_.loop.now());
  live.become(AttemptState::given);
  live.launch = slot.worker().launch();
  live.launch.code = slot.code();
  live.launch.time = context_.loop.wall_seconds();
  if (context_.launcher.queue() == nullptr) {
    live.launch.host = context_.here.host;
    live.launch.boot_id = context_.here.boot_id;
    live.launch.pid_namespace = context_.here.pid_namespace;
  }
  protocol::log_launch(live.directory, live.launch);
  fault_point("launch_logged");
  state_.attempts.note_launch(live);
}

void Claims::close_idle_workers() {
  const EventLoop::Time now = context_.loop.now();
  const bool ends = !state_.course.claiming();
  std::vector<std::string> to_release;
  for (auto& [name, slot] : state_.slots.all()) {
    const bool no_more =
        ends || is_to_make_room(slot) || state_.trials.schedule().waiting(slot.gpus) == 0;
    const bool idle = slot.line() == 0 && slot.ended.empty() &&
                      (no_more || slot.health.retired || guard_.is_disabled(slot));
    // A worker that takes a single trial and has finished it must end, even if trials wait for its
    // slot; likewise a job that has no time for another.
    const bool spent =
        slot.given.empty() && ((!context_.launcher.workers_stay() && slot.served.given) ||
                               (slot.line() == 0 && slot.ends_too_soon(now)));
    if (idle || spent) slot.close(now);
    if (idle && !slot.has_worker() && !slot.health.broken) to_release.push_back(name);
  }
  for (const std::string& name : to_release) {
    state_.slots.release(name);
    looked_for_slots_ = {};  // there is room again
    if (shares_) shares_->look_again();
  }
}

}  // namespace petlab::orchestrator
