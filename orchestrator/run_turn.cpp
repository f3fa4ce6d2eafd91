// One turn of Run's loop: all that workers wrote and all that ended goes into one transaction with
// the next claims; only when that is committed do directories and workers follow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/attempt_log.h"
#include "orchestrator/error.h"
#include "orchestrator/fault_point.h"
#include "orchestrator/run_impl.h"
#include "orchestrator/wall_clock.h"

namespace petlab::orchestrator {

using results::Outcome;
using sweeps::TrialState;

namespace {

// Claims run ahead of a worker by about this much work, so that it never waits for a commit. Longer
// trials are claimed one at a time, so that a slot that falls free can have them.
constexpr double kAheadSeconds = 0.05;
constexpr double kMostAhead = 64;
constexpr int kLaunchFailuresThatStop = 3;
constexpr const char* kCancelled = "petlab cancel";
// Of one attempt in one turn, so that one that floods its events does not keep the others waiting.
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

std::string one_line(std::string_view text) {
  const std::size_t last = text.find_last_not_of('\n');
  if (last == std::string_view::npos) return {};
  text = text.substr(0, last + 1);
  const std::size_t begin = text.rfind('\n');
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

}  // namespace

bool Run::Impl::has_turn() const {
  return !dirty_.empty() || std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second.end.has_value();
  });
}

void Run::Impl::turn() {
  const Clock::time_point now = Clock::now();
  const bool claiming = phase_ == Phase::running && problem_.empty();
  if (claiming && !elsewhere_.empty() &&
      now - looked_elsewhere_ >= std::chrono::milliseconds(200)) {
    look_elsewhere();
  }
  if (claiming) acquire_slots();
  std::vector<std::pair<SlotState*, std::size_t>> chosen;
  if (claiming) choose(chosen);
  const bool drop_ready = std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
    const auto& ready = entry.second.ready;
    return std::any_of(ready.begin(), ready.end(), [&](const Live* live) {
      return !claiming || live->verdict == Verdict::cancelled;
    });
  });
  if (has_turn() || !chosen.empty() || drop_ready) {
    std::vector<Live*> claimed;
    results::Batch batch = store_.begin();
    record_launches(batch);
    read_events(batch);
    for (auto& [name, slot] : slots_) {
      if (slot.end) conclude_worker(slot, batch);
      give_ready_back(slot, !claiming, batch);
    }
    for (const auto& [slot, trial] : chosen) claim(*slot, trial, batch, claimed);
    fault_point("before_commit");
    batch.commit();
    fault_point("committed");
    for (auto& [trial, plan] : std::exchange(over_, {})) settle_over(trial, std::move(plan));
    for (Live* live : claimed) prepare(*live);
  }
  for (auto& [name, slot] : slots_) give(slot);
  close_idle_workers();
}

void Run::Impl::record_launches(results::Batch& batch) {
  for (const Live* live : std::exchange(launched_, {})) {
    batch.record_launch(live->attempt, live->launch);
  }
}

void Run::Impl::read_events(results::Batch& batch) {
  const std::set<Live*> dirty = std::exchange(dirty_, {});
  for (Live* live : dirty) {
    if (!live->over) read_events(*live, batch);
    SlotState& slot = slots_.at(live->slot);
    if (live->over) take_out(*live, slot);
  }
}

void Run::Impl::read_events(Live& live, results::Batch& batch) {
  SlotState& slot = slots_.at(live.slot);
  const IngestUpdate update = ingest_.read(batch, live.attempt, kMaxBytes);
  fault_point("events_read");
  if (update.lines > 0) live.heard = Clock::now();
  if (update.started) {
    live.started = true;
    slot.any_started = true;
    slot.launch_failures = 0;
  }
  if (update.progress) live.progress = update.progress;
  if (update.checkpoint) live.checkpointed = true;
  if (update.more) dirty_.insert(&live);
  if (!update.over) return;
  live.over = true;
  dirty_.erase(&live);
  Trial& trial = trials_[live.trial];
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - slot.last_over).count();
  slot.last_over = now;
  slot.mean_seconds += 0.3 * (seconds - slot.mean_seconds);
  if (std::holds_alternative<sweeps::Finished>(*update.over)) {
    TrialPlan plan = trial.plan;
    plan.state = TrialState::done;
    plan.latest = live.attempt.number;
    plan.why = fmt::format("finished in attempt {}", live.attempt.number);
    over_.emplace_back(live.trial, std::move(plan));
    return;
  }
  const sweeps::Failed& failed = std::get<sweeps::Failed>(*update.over);
  if (failed.kind == "out_of_memory") schedule_.task(live.trial).alone = true;
  results::Ending ending;
  ending.outcome = Outcome::failed;
  ending.reason = failed.reason;
  ending.time = wall_clock_seconds();
  if (slot.worker && !slot.given.empty() && slot.given.front() == &live) {
    ending.log_tail = slot.worker->last_lines();
  }
  conclude_attempt(live, ending, batch);
  // It does not know where it is any more: what it would write next cannot be believed either.
  if (failed.kind == "protocol" && slot.worker && !slot.end) {
    slot.asked_to_stop = true;
    slot.asked_at = now;
    slot.worker->kill();
  }
}

void Run::Impl::conclude_attempt(Live& live, const results::Ending& ending, results::Batch& batch) {
  log_ending(live.directory, ending);
  fault_point("ending_logged");
  batch.record_ending(live.attempt, ending);
  // Planned from the database, as the next start would.
  const std::vector<results::TrialFacts> facts = facts_of({live.trial});
  over_.emplace_back(live.trial,
                     plan_trial(trials_[live.trial].what->config, facts.front(), context()));
  live.over = true;
}

// The worker is gone: what its attempts have written is all that they will.
void Run::Impl::conclude_worker(SlotState& slot, results::Batch& batch) {
  const WorkerEnd end = *slot.end;
  std::vector<Live*> given(slot.given.begin(), slot.given.end());
  std::vector<Live*> suspects;
  std::vector<Live*> unstarted;
  for (Live* live : given) {
    do {
      dirty_.erase(live);
      if (!live->over) read_events(*live, batch);
    } while (dirty_.contains(live));
    if (!live->over) (live->started ? suspects : unstarted).push_back(live);
  }
  results::Ending ending;
  ending.time = wall_clock_seconds();
  ending.reason = "the worker ended with " + to_string(end);
  if (const Exited* exited = std::get_if<Exited>(&end.how)) ending.exit_code = exited->code;
  if (const Killed* killed = std::get_if<Killed>(&end.how)) ending.signal = killed->signal;
  const bool own_doing =
      slot.asked_to_stop || std::any_of(given.begin(), given.end(), [](const Live* live) {
        return live->verdict != Verdict::none;
      });
  for (Live* live : suspects) {
    results::Ending its = ending;
    its.log_tail = end.last_lines;
    if (live->verdict == Verdict::timed_out) {
      its.outcome = Outcome::timed_out;
      its.reason = fmt::format("ran longer than {:.6g} s (--time-limit)",
                               std::chrono::duration<double>(*options_.time_limit).count());
    } else if (live->verdict == Verdict::stalled) {
      its.outcome = Outcome::stalled;
      its.reason = fmt::format("reported nothing for {:.6g} s (--no-progress-limit)",
                               std::chrono::duration<double>(*options_.no_progress_limit).count());
    } else if (live->verdict == Verdict::cancelled) {
      its.outcome = Outcome::cancelled;
      its.reason = kCancelled;
    } else if (slot.asked_to_stop) {
      its.outcome = Outcome::stopped;
      its.reason = "asked to stop";
    } else if (ending.exit_code == 3 && live->checkpointed) {
      its.outcome = Outcome::stopped;
      its.reason = "the worker was stopped by a signal";
    } else if (suspects.size() > 1) {
      its.outcome = Outcome::stopped;
      its.reason += fmt::format(" with {} trials begun: each is tried alone", suspects.size());
      schedule_.task(live->trial).alone = true;
    } else {
      its.outcome = Outcome::crashed;
      if (!end.last_lines.empty()) its.reason += ": " + one_line(end.last_lines);
    }
    conclude_attempt(*live, its, batch);
  }
  for (Live* live : unstarted) {
    results::Ending its = ending;
    its.outcome = Outcome::never_started;
    its.reason += " before this trial began";
    if (live->verdict == Verdict::cancelled) {
      its.outcome = Outcome::cancelled;
      its.reason = kCancelled;
    } else if (live->verdict == Verdict::timed_out || live->verdict == Verdict::stalled) {
      its.outcome = live->verdict == Verdict::stalled ? Outcome::stalled : Outcome::timed_out;
      its.reason = "the worker never began it";
    }
    conclude_attempt(*live, its, batch);
  }
  for (Live* live : given) take_out(*live, slot);
  slot.worker.reset();
  slot.end.reset();
  const bool counts = !own_doing && !slot.any_started && !unstarted.empty();
  slot.any_started = slot.closing = slot.asked_to_stop = false;
  slot.group.clear();
  if (counts) launch_failed(slot, "the worker ended with " + to_string(end), end.last_lines);
}

void Run::Impl::launch_failed(SlotState& slot, const std::string& what, const std::string& lines) {
  ++slot.launch_failures;
  slot.not_before = Clock::now() + backoff(options_.retry_delay, slot.launch_failures);
  if (slot.launch_failures < kLaunchFailuresThatStop) return;
  slot.broken = true;
  const std::string message = fmt::format(
      "slot {} is stopped: three workers in a row ended before they began a trial: {}{}{}",
      slot.name, what, lines.empty() ? "" : "\n", lines);
  observer_.note(message);
  const bool any_left = std::any_of(slots_.begin(), slots_.end(),
                                    [](const auto& entry) { return !entry.second.broken; });
  if (!any_left) problem_ = message;
}

// Claims that were not given to a worker yet: all when no more trials are to begin, else those that
// the user took out.
void Run::Impl::give_ready_back(SlotState& slot, bool all, results::Batch& batch) {
  for (Live* live : std::deque<Live*>(slot.ready)) {
    const bool cancelled = live->verdict == Verdict::cancelled;
    if (!all && !cancelled) continue;
    results::Ending ending;
    ending.outcome = cancelled ? Outcome::cancelled : Outcome::never_started;
    ending.reason = cancelled ? kCancelled : "the run was stopped before it began";
    ending.time = wall_clock_seconds();
    conclude_attempt(*live, ending, batch);
    take_out(*live, slot);
  }
}

void Run::Impl::settle_over(std::size_t trial, TrialPlan plan) {
  const TrialState state = plan.state;
  const std::string why = plan.why;
  if (state == TrialState::done) ++finished_here_;
  settle_plan(trial, std::move(plan));
  observer_.trial_over(trials_[trial].what->id.value, state,
                       state == TrialState::done ? std::string() : why);
}

// Forgets an attempt that is over.
void Run::Impl::take_out(Live& live, SlotState& slot) {
  ingest_.forget(live.attempt);
  watch_.remove(live.watch);
  by_watch_.erase(live.watch);
  dirty_.erase(&live);
  std::erase(launched_, &live);
  const bool was_front = !slot.given.empty() && slot.given.front() == &live;
  std::erase(slot.given, &live);
  std::erase(slot.ready, &live);
  if (was_front) front_changed(slot);
  live_.erase(live.place);
}

void Run::Impl::front_changed(SlotState& slot) {
  if (slot.given.empty() || !slot.worker) return;
  Live& front = *slot.given.front();
  front.began = front.heard = Clock::now();
  slot.worker->log_to(front.directory.log());
}

void Run::Impl::acquire_slots() {
  const Clock::time_point now = Clock::now();
  const auto idle = std::count_if(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second.given.empty() && entry.second.ready.empty() && !entry.second.broken;
  });
  auto missing = static_cast<std::int64_t>(schedule_.waiting()) - idle;
  if (missing <= 0 || static_cast<std::int64_t>(slots_.size()) >= options_.slots) return;
  if (now - looked_for_slots_ < std::chrono::milliseconds(200)) return;
  looked_for_slots_ = now;
  while (missing-- > 0 && static_cast<std::int64_t>(slots_.size()) < options_.slots) {
    const std::optional<std::string> name = launcher_.acquire_slot();
    if (!name) return;
    SlotState& slot = slots_[*name];
    slot.name = *name;
    slot.last_over = now;
  }
}

std::size_t Run::Impl::line_length(const SlotState& slot) const {
  const double ahead = std::ceil(kAheadSeconds / std::max(slot.mean_seconds, 1e-6));
  const double fair = static_cast<double>(schedule_.waiting()) / static_cast<double>(slots_.size());
  return static_cast<std::size_t>(std::max(1.0, std::min({ahead, fair, kMostAhead})));
}

void Run::Impl::choose(std::vector<std::pair<SlotState*, std::size_t>>& chosen) {
  const Clock::time_point now = Clock::now();
  for (auto& [name, slot] : slots_) {
    if (slot.broken || slot.closing || slot.asked_to_stop || slot.end || slot.not_before > now) {
      continue;
    }
    const auto is_alone = [this](const Live* live) { return schedule_.task(live->trial).alone; };
    if (std::any_of(slot.given.begin(), slot.given.end(), is_alone)) continue;
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

void Run::Impl::claim(SlotState& slot, std::size_t index, results::Batch& batch,
                      std::vector<Live*>& claimed) {
  Trial& trial = trials_[index];
  const std::string& id = trial.what->id.value;
  results::NewAttempt begun;
  begun.trial_id = id;
  begun.after = trial.plan.latest;
  begun.at_least = highest_attempt_directory(options_.runs, id) + 1;
  begun.resume = trial.plan.resume;
  begun.sweep = sweep_.name;
  begun.owner = options_.owner;
  begun.host = here_.host;
  begun.boot_id = here_.boot_id;
  begun.pid_namespace = here_.pid_namespace;
  begun.device = slot.name;
  begun.launcher = "local";
  begun.commit = options_.petlab_version;
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
  live_.emplace_front(sweeps::TrialDirectory(options_.runs, id, attempt->number));
  Live& live = live_.front();
  live.place = live_.begin();
  live.attempt = *attempt;
  live.begun = begun;
  live.trial = index;
  live.slot = slot.name;
  trial.standing = Standing::taken;
  slot.ready.push_back(&live);
  claimed.push_back(&live);
}

void Run::Impl::prepare(Live& live) {
  fault_point("claimed");
  const sweeps::SweepTrial& what = *trials_[live.trial].what;
  sweeps::TrialFile file;
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
  file.resume = live.begun.resume;
  make_attempt_directory(live.directory, file, live.begun);
  fault_point("directory_made");
  live.watch = watch_.add(live.directory.folder());
  if (live.watch >= 0) by_watch_[live.watch] = &live;
}

// Hands what is ready to the slot's worker, starting one where there is none.
void Run::Impl::give(SlotState& slot) {
  if (slot.closing || slot.asked_to_stop || slot.end) return;
  while (!slot.ready.empty() && (!slot.worker || launcher_.workers_stay())) {
    Live& live = *slot.ready.front();
    if (!slot.worker) {
      if (slot.not_before > Clock::now() || slot.broken) return;
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
    live.launch = slot.worker->launch();
    live.launch.host = here_.host;
    live.launch.boot_id = here_.boot_id;
    live.launch.pid_namespace = here_.pid_namespace;
    live.launch.time = wall_clock_seconds();
    log_launch(live.directory, live.launch);
    launched_.push_back(&live);
    if (slot.given.size() == 1) front_changed(slot);
  }
}

void Run::Impl::close_idle_workers() {
  const bool no_more = phase_ != Phase::running || !problem_.empty() || schedule_.waiting() == 0;
  for (auto entry = slots_.begin(); entry != slots_.end();) {
    SlotState& slot = entry->second;
    const bool idle = slot.given.empty() && slot.ready.empty() && no_more;
    if (idle && slot.worker && !slot.closing && !slot.end) {
      slot.closing = true;
      slot.asked_at = Clock::now();
      slot.worker->close();
    }
    if (idle && !slot.worker && !slot.broken) {
      launcher_.release_slot(slot.name);
      entry = slots_.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace petlab::orchestrator
