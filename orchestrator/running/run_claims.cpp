// The part of Run's loop that is about claims: which slots take them, what is claimed for which
// slot, and how it reaches the slot's worker.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/attempt_log.h"
#include "orchestrator/running/run_impl.h"

namespace petlab::orchestrator {

using results::Outcome;

namespace {

// Claims run ahead of a worker by about this much work, so that it never waits for a commit. Longer
// trials are claimed one at a time, so that a slot that falls free can have them.
constexpr double kAheadSeconds = 0.05;
constexpr double kMostAhead = 64;

}  // namespace

bool Run::Impl::takes_claims(const SlotState& slot, Clock::time_point now) const {
  return !slot.broken && !slot.retired && !slot.closing && !slot.asked_to_stop && !slot.end &&
         slot.not_before <= now &&
         std::all_of(slot.gone.begin(), slot.gone.end(),
                     [](const Gone& gone) { return gone.clean(); }) &&
         std::none_of(slot.given.begin(), slot.given.end(),
                      [this](const Live* live) { return schedule_.task(live->trial).alone; });
}

bool Run::Impl::can_claim(Clock::time_point now) const {
  if (fruitless_ && !has_news()) return false;
  const auto ready = schedule_.next_ready();
  return claiming() && ready && *ready <= now &&
         std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
           const SlotState& slot = entry.second;
           return takes_claims(slot, now) &&
                  slot.given.size() + slot.ready.size() < line_length(slot);
         });
}

// Of what its worker was given, what has news may be over already.
bool Run::Impl::runs_dry(const SlotState& slot) const {
  const auto silent = std::count_if(slot.given.begin(), slot.given.end(),
                                    [this](Live* live) { return !dirty_.contains(live); });
  return 4 * (static_cast<std::size_t>(silent) + slot.ready.size()) <= line_length(slot);
}

// Claims that no worker will get: all when no more trials are to begin, or none in this slot, those
// that the user took out, and those whose checkpoint is gone.
bool Run::Impl::to_give_back(const SlotState& slot, const Live& live) const {
  return !claiming() || slot.broken || live.verdict == Verdict::cancelled || live.vanished;
}

// Its checkpoint was there when it was planned; its writer, which was thought dead, has removed it.
void Run::Impl::take_claim_back(Live& live, SlotState& slot) {
  observer_.note(fmt::format("{}: the checkpoint {} is there no more: planned again",
                             live.attempt.trial_id, live.resume_from.string()));
  to_store_.push_back(
      [attempt = live.attempt](results::Batch& batch) { batch.forget_attempt(attempt); });
  taken_back_.push_back(live.trial);
  take_out(live, slot);
}

void Run::Impl::give_ready_back(SlotState& slot) {
  for (Live* live : std::deque<Live*>(slot.ready)) {
    if (!to_give_back(slot, *live)) continue;
    const bool cancelled = live->verdict == Verdict::cancelled;
    results::Ending ending;
    ending.outcome = cancelled ? Outcome::cancelled : Outcome::never_started;
    ending.reason = cancelled ? kCancelled : "the run was stopped before it began";
    ending.time = wall_clock_seconds();
    if (!live->prepared && !live->vanished) prepare(*live);
    if (live->vanished) {
      take_claim_back(*live, slot);
      continue;
    }
    conclude_attempt(*live, ending);
    take_out(*live, slot);
  }
}

// Slots that could be had and would have something to do.
std::int64_t Run::Impl::slots_missing(Clock::time_point now) const {
  const auto idle = std::count_if(slots_.begin(), slots_.end(), [now](const auto& entry) {
    const SlotState& slot = entry.second;
    return slot.given.empty() && slot.ready.empty() && !slot.broken && slot.not_before <= now;
  });
  return std::min(static_cast<std::int64_t>(schedule_.waiting()) - idle,
                  options_.slots - static_cast<std::int64_t>(slots_.size()));
}

void Run::Impl::acquire_slots() {
  const Clock::time_point now = Clock::now();
  std::int64_t missing = slots_missing(now);
  if (missing <= 0 || now - looked_for_slots_ < std::chrono::milliseconds(200)) return;
  looked_for_slots_ = now;
  while (missing-- > 0) {
    const std::optional<std::string> name = launcher_.acquire_slot();
    if (!name) return;
    add_slot(*name);
  }
}

Run::Impl::SlotState& Run::Impl::add_slot(const std::string& name) {
  SlotState& slot = slots_[name];
  slot.name = name;
  slot.last_over = Clock::now();
  return slot;
}

std::size_t Run::Impl::line_length(const SlotState& slot) const {
  if (!slot.mean_seconds || launcher_.queues()) return 1;
  const double ahead = std::ceil(kAheadSeconds / std::max(*slot.mean_seconds, 1e-6));
  const double fair = static_cast<double>(schedule_.waiting()) / static_cast<double>(slots_.size());
  return static_cast<std::size_t>(std::max(1.0, std::min({ahead, fair, kMostAhead})));
}

void Run::Impl::choose(std::vector<std::pair<SlotState*, std::size_t>>& chosen,
                       Clock::time_point now) {
  if (!claiming()) return;
  if (launcher_.shares_devices()) {
    choose_shares(chosen, now);
    return;
  }
  for (auto& [name, slot] : slots_) {
    if (!takes_claims(slot, now)) continue;
    std::size_t line = slot.given.size() + slot.ready.size();
    const std::size_t most = line_length(slot);
    while (line < most) {
      const std::optional<std::size_t> trial = schedule_.take(slot.group, line > 0, now);
      if (!trial) break;
      chosen.emplace_back(&slot, *trial);
      slot.group = schedule_.task(*trial).group;
      ++line;
      if (schedule_.task(*trial).alone) break;
    }
  }
}

void Run::Impl::claim(SlotState& slot, std::size_t index, std::int64_t at_least,
                      results::Batch& batch) {
  Trial& trial = trials_[index];
  const std::string& id = trial.what->id.value;
  results::NewAttempt begun;
  begun.trial_id = id;
  begun.planned_from = trial.plan.planned_from;
  begun.at_least = at_least;
  begun.resume = trial.plan.resume;
  if (begun.resume) begun.resume->checkpoint = protocol::kept_checkpoint(begun.resume->checkpoint);
  begun.sweep = sweep_.name;
  begun.owner = options_.owner;
  if (!launcher_.queues()) {
    begun.host = here_.host;
    begun.boot_id = here_.boot_id;
    begun.pid_namespace = here_.pid_namespace;
  }
  begun.device = slot.name;
  begun.launcher = launcher_.kind();
  begun.commit = options_.petlab_version;
  begun.retries = trial.plan.retries;
  begun.time = wall_clock_seconds();
  const results::Claim claim = batch.begin_attempt(begun);
  const results::AttemptRef* attempt = std::get_if<results::AttemptRef>(&claim);
  if (attempt == nullptr) {
    // Somebody else was first; what came of it is looked up with the others.
    // Perhaps it was over before the last look, and nothing will be written any more.
    trial.standing = Standing::elsewhere;
    elsewhere_.insert(index);
    seen_version_ = -1;
    return;
  }
  live_.emplace_front(protocol::TrialDirectory(options_.runs, id, attempt->number),
                      metric_of(index));
  Live& live = live_.front();
  live.place = live_.begin();
  live.attempt = *attempt;
  ingest_.expect(batch, live.attempt);
  live.begun = begun;
  if (begun.resume) {
    live.resume_from = (live.directory.folder() / trial.plan.resume->checkpoint).lexically_normal();
  }
  live.trial = index;
  live.slot = slot.name;
  trial.standing = Standing::taken;
  slot.ready.push_back(&live);
}

void Run::Impl::prepare(Live& live) {
  fault_point("claimed");
  const sweeps::SweepTrial& what = *trials_[live.trial].what;
  protocol::TrialFile file;
  file.trial_id = live.attempt.trial_id;
  file.attempt = live.attempt.number;
  file.config = what.config;
  for (const std::string& task : what.config.tasks) {
    file.tasks.push_back(sweep_.tasks.at(task));
    const auto digest = data_digests_.find(task);
    if (digest != data_digests_.end()) file.data_digests[task] = digest->second;
  }
  file.backbone_folder = sweep_.backbone_folders.at(what.config.backbone);
  file.backbone_digest = sweep_.backbone_digests.at(what.config.backbone);
  file.data_folders = locations_.data_folders;
  file.threads = options_.threads;
  file.device = launcher_.device(live.slot);
  const DeviceShare share = launcher_.share(live.slot);
  file.device_uuid = share.uuid;
  file.device_memory_mib = share.memory_mib;
  file.resume = live.begun.resume;
  live.prepared = make_attempt_directory(live.directory, file, live.begun, live.resume_from);
  live.vanished = !live.prepared;
  if (live.vanished) return;
  fault_point("directory_made");
  live.watch = watch_.add(live.directory.folder());
  if (live.watch >= 0) by_watch_[live.watch] = &live;
}

// False where all that is claimed is prepared.
bool Run::Impl::prepare_one() {
  if (!claiming()) return false;
  for (auto& [name, slot] : slots_) {
    for (Live* live : slot.ready) {
      if (live->prepared || live->vanished) continue;
      prepare(*live);
      return true;
    }
  }
  return false;
}

// Hands what is ready to the slot's worker, starting one where there is none.
void Run::Impl::give(SlotState& slot) {
  const bool all_clean = std::all_of(slot.gone.begin(), slot.gone.end(),
                                     [](const Gone& gone) { return gone.clean(); });
  if (slot.closing || slot.asked_to_stop || slot.end || !all_clean) return;
  while (!slot.ready.empty() && (!slot.worker || launcher_.workers_stay())) {
    Live& live = *slot.ready.front();
    if (to_give_back(slot, live)) return;
    // For a busy worker they are prepared one by one, between looks at what else has happened.
    if (!live.prepared && !slot.given.empty()) return;
    if (!live.prepared) prepare(live);
    if (live.vanished) return;
    if (!slot.worker) {
      if (slot.not_before > Clock::now()) return;
      try {
        slot.worker = launcher_.start(slot.name, live.directory.folder(),
                                      [&slot](WorkerEnd end) { slot.end = std::move(end); });
      } catch (const Error& error) {
        launch_failed(slot, error.what(), "");
        return;
      }
    } else {
      slot.worker->submit(live.directory.folder());
    }
    fault_point("given");
    slot.ready.pop_front();
    slot.given.push_back(&live);
    live.launched = true;
    if (!launcher_.queues()) {
      live.launch = slot.worker->launch();
      live.launch.host = here_.host;
      live.launch.boot_id = here_.boot_id;
      live.launch.pid_namespace = here_.pid_namespace;
      live.launch.time = wall_clock_seconds();
      log_launch(live.directory, live.launch);
      launched_.push_back(&live);
    }
    if (slot.given.size() == 1) front_changed(slot);
  }
}

void Run::Impl::close_idle_workers() {
  const bool no_more = phase_ != Phase::running || !problem_.empty() || schedule_.waiting() == 0;
  for (auto entry = slots_.begin(); entry != slots_.end();) {
    SlotState& slot = entry->second;
    const bool idle =
        slot.given.empty() && slot.ready.empty() && slot.gone.empty() && (no_more || slot.retired);
    // One that takes a single trial and has finished it must go, whatever waits for its slot.
    const bool spent = slot.given.empty() && !launcher_.workers_stay();
    if ((idle || spent) && slot.worker && !slot.closing && !slot.end) {
      slot.closing = true;
      slot.asked_at = Clock::now();
      slot.worker->close();
    }
    if (idle && !slot.worker && !slot.broken) {
      launcher_.release_slot(slot.name);
      looked_for_slots_ = {};  // there is room
      entry = slots_.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace petlab::orchestrator
