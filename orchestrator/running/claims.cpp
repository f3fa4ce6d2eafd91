#include "orchestrator/running/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/machine.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"
#include "protocol/attempt_log.h"

namespace petlab::orchestrator {

using results::Outcome;

namespace {

// No event reports that a slot has become free, so free slots are polled.
constexpr auto kLookForSlots = std::chrono::milliseconds(200);

}  // namespace

std::int64_t Claims::slots_missing(EventLoop::Time now) const {
  const auto idle =
      std::count_if(slots_.all().begin(), slots_.all().end(), [now](const auto& entry) {
        const WorkerSlot& slot = entry.second;
        return slot.line() == 0 && !slot.broken && !slot.barred && !slot.is_lost() &&
               slot.not_before <= now;
      });
  return std::min(static_cast<std::int64_t>(trials_.schedule().waiting()) - idle,
                  context_.options.slots - slots_.size());
}

void Claims::acquire_slots(const std::function<bool()>& may_take) {
  guard_.bar_slots();
  if (shares_) {
    if (shares_->acquire(may_take)) forget_fruitless();
    return;
  }
  const EventLoop::Time now = context_.loop.now();
  std::int64_t missing = slots_missing(now);
  if (missing <= 0 || now - looked_for_slots_ < kLookForSlots) return;
  looked_for_slots_ = now;
  while (missing-- > 0 && may_take()) {
    const std::optional<std::string> name = context_.launcher.acquire_slot();
    if (!name) return;
    slots_.add(*name);
  }
}

std::optional<EventLoop::Time> Claims::next_chance(EventLoop::Time now) const {
  std::optional<EventLoop::Time> chance;
  const auto earliest = [&chance](EventLoop::Time time) {
    if (!chance || time < *chance) chance = time;
  };
  if (!course_.claiming() || trials_.schedule().waiting() == 0) return chance;
  const EventLoop::Time ready = *trials_.schedule().next_ready();
  if (ready > now) earliest(ready);
  if (slots_missing(now) > 0) {
    earliest((shares_ ? shares_->looked() : looked_for_slots_) + kLookForSlots);
  }
  for (const auto& [name, slot] : slots_.all()) {
    if (slot.not_before > now) earliest(slot.not_before);
  }
  return chance;
}

bool Claims::can_claim(EventLoop::Time now, bool news) const {
  if (!news && fruitless_since_ == trials_.additions()) return false;
  const auto ready = trials_.schedule().next_ready();
  return course_.claiming() && ready && *ready <= now && slots_.any([&](const WorkerSlot& slot) {
    return slot.takes_claims(trials_.schedule(), now) &&
           slot.line() < slots_.line_length(slot, trials_.schedule());
  });
}

// An attempt with news may be over already, so only attempts without news count as work.
bool Claims::runs_dry(EventLoop::Time now) const {
  return slots_.any([&](const WorkerSlot& slot) {
    if (!slot.takes_claims(trials_.schedule(), now)) return false;
    const auto silent =
        std::count_if(slot.given.begin(), slot.given.end(),
                      [this](const LiveAttempt* live) { return !attempts_.has_news(*live); });
    return 4 * (static_cast<std::size_t>(silent) + slot.ready.size()) <=
           slots_.line_length(slot, trials_.schedule());
  });
}

void Claims::choose(Choice& chosen, EventLoop::Time now) {
  if (!course_.claiming()) return;
  guard_.bar_slots();
  if (shares_) {
    shares_->choose(chosen, now);
    return;
  }
  Schedule& schedule = trials_.schedule();
  for (auto& [name, slot] : slots_.all()) {
    if (!slot.takes_claims(schedule, now)) continue;
    std::size_t line = slot.line();
    const std::size_t most = slots_.line_length(slot, trials_.schedule());
    while (line < most) {
      const std::optional<std::size_t> trial = schedule.take(
          slot.group, line > 0, now,
          [&, &slot = slot](std::size_t candidate) { return guard_.may_have(slot, candidate); });
      if (!trial) break;
      chosen.emplace_back(&slot, *trial);
      slot.group = schedule.trial(*trial).group;
      ++line;
      if (schedule.trial(*trial).alone) break;
    }
  }
}

std::vector<std::int64_t> Claims::next_numbers(const Choice& chosen) const {
  std::vector<std::int64_t> numbers;
  for (const auto& [slot, trial] : chosen) {
    numbers.push_back(highest_attempt_directory(context_.options.runs, trials_.at(trial).id()) + 1);
  }
  return numbers;
}

void Claims::claim(const Choice& chosen, const std::vector<std::int64_t>& at_least,
                   results::Batch& batch) {
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    claim_one(*chosen[at].first, chosen[at].second, at_least[at], batch);
  }
}

// Cached: a run has few devices, and querying one reads files of the kernel.
const std::string& Claims::provenance_on(const std::string& gpu) {
  const auto [known, is_new] = provenance_.try_emplace(gpu, context_.options.provenance);
  if (!is_new || gpu.empty() || known->second.empty()) return known->second;
  nlohmann::ordered_json all = nlohmann::ordered_json::parse(known->second);
  if (const std::string model = base::gpu_model(gpu); !model.empty()) all["gpu"] = model;
  return known->second = all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Claims::claim_one(WorkerSlot& slot, std::size_t trial, std::int64_t at_least,
                       results::Batch& batch) {
  const TrialPlan& plan = trials_.at(trial).plan;
  const std::string& id = trials_.at(trial).id();
  results::NewAttempt begun;
  begun.trial_id = id;
  begun.planned_from = plan.planned_from;
  begun.at_least = at_least;
  begun.resume = plan.resume;
  if (begun.resume) begun.resume->checkpoint = protocol::kept_checkpoint(begun.resume->checkpoint);
  begun.sweep = context_.sweep.name;
  begun.owner = context_.options.owner;
  if (context_.launcher.queue() == nullptr) {
    begun.host = context_.here.host;
    begun.boot_id = context_.here.boot_id;
    begun.pid_namespace = context_.here.pid_namespace;
  }
  begun.device = slot.name;
  begun.launcher = context_.launcher.kind();
  begun.commit = context_.options.petlab_version;
  begun.provenance = provenance_on(context_.launcher.device(slot.name).uuid);
  begun.retries = plan.retries;
  begun.time = context_.loop.wall_seconds();
  const results::Claim claim = batch.begin_attempt(begun);
  const results::AttemptRef* attempt = std::get_if<results::AttemptRef>(&claim);
  if (attempt == nullptr) {
    trials_.settle_elsewhere(trial);
    next_.claim_lost = true;
    return;
  }
  LiveAttempt& live =
      attempts_.add(protocol::TrialDirectory(context_.options.runs, id, attempt->number), *attempt,
                    trials_.metric_of(trial), AttemptState::claimed);
  context_.ingest.expect(batch, live.attempt);
  live.begun = begun;
  if (begun.resume) {
    live.resume_from = (live.directory.folder() / plan.resume->checkpoint).lexically_normal();
  }
  live.trial = trial;
  live.slot = slot.name;
  trials_.settle_assigned(trial);
  slot.ready.push_back(&live);
}

void Claims::prepare(LiveAttempt& live) {
  fault_point("claimed");
  const sweeps::Sweep& sweep = context_.sweep;
  const sweeps::SweepTrial& what = *trials_.at(live.trial).what;
  protocol::TrialFile file;
  file.trial_id = live.attempt.trial_id;
  file.attempt = live.attempt.number;
  file.config = what.config;
  for (const std::string& task : what.config.tasks) {
    file.tasks.push_back(sweep.tasks.at(task));
    const auto digest = context_.planning.data_digests.find(task);
    if (digest != context_.planning.data_digests.end()) file.data_digests[task] = digest->second;
  }
  if (const std::string& backbone = what.config.backbone; !backbone.empty()) {
    file.backbone_folder = sweep.backbone_folders.at(backbone);
    file.backbone_digest = sweep.backbone_digests.at(backbone);
  }
  file.data_folders = context_.locations.data_folders;
  file.threads = context_.options.threads;
  const SlotDevice device = context_.launcher.device(live.slot);
  file.device = device.kind;
  file.device_uuid = device.uuid;
  file.device_memory_mib = device.memory_mib;
  file.resume = live.begun.resume;
  const bool created = make_attempt_directory(live.directory, file, live.begun, live.resume_from);
  live.become(created ? AttemptState::prepared : AttemptState::vanished);
  if (!created) return;
  fault_point("directory_made");
  attempts_.watch(live);
}

bool Claims::prepare_one() {
  if (!course_.claiming()) return false;
  for (auto& [name, slot] : slots_.all()) {
    for (LiveAttempt* live : slot.ready) {
      if (live->state() != AttemptState::claimed) continue;
      prepare(*live);
      return true;
    }
  }
  return false;
}

void Claims::give(WorkerSlot& slot) {
  const bool open = slot.state() == SlotState::empty || slot.state() == SlotState::serving;
  if (!open || !slot.all_ends_clean()) return;
  while (!slot.ready.empty() && (!slot.has_worker() || context_.launcher.workers_stay())) {
    LiveAttempt& live = *slot.ready.front();
    if (to_give_back(slot, live)) return;
    if (live.state() == AttemptState::claimed) {
      // For a busy worker, prepare_one() creates directories one by one, and the loop handles other
      // events in between.
      if (!slot.given.empty()) return;
      prepare(live);
    }
    if (live.state() == AttemptState::vanished) return;
    if (slot.has_worker()) {
      slot.worker().submit(live.directory.folder());
    } else if (slot.not_before > context_.loop.now() || !start_worker(slot, live)) {
      return;
    }
    fault_point("given");
    slot.ready.pop_front();
    slot.given.push_back(&live);
    live.become(AttemptState::given);
    live.launch.code = slot.code;
    if (context_.launcher.queue() == nullptr) {
      live.launch = slot.worker().launch();
      live.launch.code = slot.code;
      live.launch.host = context_.here.host;
      live.launch.boot_id = context_.here.boot_id;
      live.launch.pid_namespace = context_.here.pid_namespace;
      live.launch.time = context_.loop.wall_seconds();
      protocol::log_launch(live.directory, live.launch);
      attempts_.note_launch(live);
    }
    if (slot.given.size() == 1) slots_.front_changed(slot);
  }
}

bool Claims::start_worker(WorkerSlot& slot, LiveAttempt& live) {
  slot.code = code_.capture();
  if (!course_.claiming()) return false;  // the code changed
  try {
    slot.serve(context_.launcher.start(slot.name, live.directory.folder(), [&slot](WorkerEnd end) {
      slot.report_end(std::move(end));
    }));
    return true;
  } catch (const Error& error) {
    outcomes_.launch_failed(slot, error.what(), "");
    return false;
  }
}

void Claims::record_launches() {
  for (const LiveAttempt* live : attempts_.take_launched()) {
    next_.writes.push_back([attempt = live->attempt, launch = live->launch](results::Batch& batch) {
      batch.record_launch(attempt, launch);
    });
  }
}

bool Claims::to_give_back(const WorkerSlot& slot, const LiveAttempt& live) const {
  return !course_.claiming() || slot.broken || slot.is_lost() || guard_.is_disabled(slot) ||
         live.verdict == Verdict::cancelled || live.state() == AttemptState::vanished;
}

bool Claims::any_to_give_back(const WorkerSlot& slot) const {
  return std::any_of(slot.ready.begin(), slot.ready.end(),
                     [&](const LiveAttempt* live) { return to_give_back(slot, *live); });
}

std::string Claims::why_given_back(const WorkerSlot& slot) const {
  if (course_.phase != Course::Phase::running)
    return "the run was stopped before the trial started";
  if (!course_.problem.empty()) return "an error ended the run before the trial started";
  return fmt::format("slot {} was disabled before the trial started", slot.name);
}

void Claims::give_ready_back(WorkerSlot& slot) {
  for (LiveAttempt* live : std::deque<LiveAttempt*>(slot.ready)) {
    if (!to_give_back(slot, *live)) continue;
    if (live->state() == AttemptState::claimed) prepare(*live);
    if (live->state() == AttemptState::vanished) {
      withdraw_claim(*live, slot);
      continue;
    }
    const bool cancelled = live->verdict == Verdict::cancelled;
    results::Ending ending;
    ending.outcome = cancelled ? Outcome::cancelled : Outcome::never_started;
    ending.reason = cancelled ? kCancelledByUser : why_given_back(slot);
    ending.time = context_.loop.wall_seconds();
    outcomes_.conclude_attempt(*live, ending);
    outcomes_.remove_from_slot(*live, slot);
  }
}

// The checkpoint existed when the trial was planned. Its writer, which was considered dead, has
// removed it since.
void Claims::withdraw_claim(const LiveAttempt& live, WorkerSlot& slot) {
  context_.observer.note(fmt::format("{}: checkpoint {} no longer exists; planned again",
                                     live.attempt.trial_id, live.resume_from.string()));
  next_.writes.push_back(
      [attempt = live.attempt](results::Batch& batch) { batch.forget_attempt(attempt); });
  next_.withdrawn.push_back(live.trial);
  outcomes_.remove_from_slot(live, slot);
}

void Claims::close_idle_workers() {
  const EventLoop::Time now = context_.loop.now();
  const bool no_more = !course_.claiming() || trials_.schedule().waiting() == 0;
  std::vector<std::string> to_release;
  for (auto& [name, slot] : slots_.all()) {
    const bool idle = slot.line() == 0 && slot.ended.empty() &&
                      (no_more || slot.retired || guard_.is_disabled(slot));
    // A worker that takes a single trial and has finished it must end, even if trials wait for its
    // slot.
    const bool spent = slot.given.empty() && !context_.launcher.workers_stay();
    if (idle || spent) slot.close(now);
    if (idle && !slot.has_worker() && !slot.broken) to_release.push_back(name);
  }
  for (const std::string& name : to_release) {
    slots_.release(name);
    looked_for_slots_ = {};  // there is room again
    if (shares_) shares_->look_again();
  }
}

}  // namespace petlab::orchestrator
