// What Run does where workers are jobs of a queue: their launches, and the jobs of dead
// orchestrators, which go on under this one.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/attempt_log.h"
#include "orchestrator/recovery/recovery.h"
#include "orchestrator/running/run_impl.h"

namespace petlab::orchestrator {

// Of a queue's workers, as it tells.
void Run::Impl::log_launches() {
  for (const std::string& name : std::exchange(launches_, {})) {
    const auto found = slots_.find(name);
    if (found == slots_.end() || !found->second.worker || found->second.given.empty()) continue;
    Live& live = *found->second.given.front();
    live.launch = found->second.worker->launch();
    live.launch.time = wall_clock_seconds();
    if (const auto began = found->second.worker->began()) live.began = *began;
    log_launch(live.directory, live.launch);
    fault_point("launch_logged");
    if (std::find(launched_.begin(), launched_.end(), &live) == launched_.end()) {
      launched_.push_back(&live);
    }
  }
}

// A job that has begun before it was seen to run.
void Run::Impl::record_noted(Live& live) {
  const std::optional<results::Launch> noted = launcher_.noted(live.directory.folder());
  if (!noted) return;
  live.launch.job = noted->job;
  live.launch.host = noted->host;
  live.launch.time = wall_clock_seconds();
  log_launch(live.directory, live.launch);
  to_store_.push_back([attempt = live.attempt, launch = live.launch](results::Batch& batch) {
    batch.record_launch(attempt, launch);
  });
}

// No more trials are to begin: those that wait in a queue are taken out of it.
void Run::Impl::withdraw_waiting() {
  for (auto& [name, slot] : slots_) {
    if (!slot.worker || slot.end || slot.asked_to_stop || slot.any_started ||
        !slot.worker->waits()) {
      continue;
    }
    slot.asked_to_stop = true;
    slot.asked_at = Clock::now();
    slot.worker->stop();
  }
}

void Run::Impl::adopt_orphans() {
  std::int64_t adopted = 0;
  const auto wanted = [this](const results::AttemptFacts& attempt) {
    return by_id_.contains(attempt.attempt.trial_id) || attempt.begun.sweep == sweep_.name;
  };
  for (Orphans& orphans : take_orphans(store_, options_.runs, here_, options_.owner, wanted)) {
    for (const results::AttemptFacts& attempt : orphans.attempts) {
      if (!wanted(attempt)) continue;
      const auto found = by_id_.find(attempt.attempt.trial_id);
      if (settle_without_worker(attempt)) {
        if (found != by_id_.end()) replan(found->second);
      } else if (found != by_id_.end()) {
        adopt(attempt, found->second);
        ++adopted;
      } else {
        adopt_stray(attempt);
      }
      fault_point("adopted");
    }
    orphans_.push_back(std::move(orphans));
  }
  if (adopted > 0) {
    observer_.note(fmt::format("adopted {} job(s) of a petlab run that had died", adopted));
  }
  if (!strays_.empty()) {
    observer_.note(fmt::format("{} job(s) of trials that the sweep no longer has are cancelled",
                               strays_.size()));
  }
}

// A claim without a directory, or an attempt whose worker had its last say.
bool Run::Impl::settle_without_worker(const results::AttemptFacts& attempt) {
  const protocol::TrialDirectory directory(options_.runs, attempt.attempt.trial_id,
                                           attempt.attempt.number);
  std::error_code error;
  if (!std::filesystem::exists(directory.folder(), error) && !error) {
    remove_unfinished_directories(directory);
    results::Batch batch = store_.begin();
    batch.forget_attempt(attempt.attempt);
    batch.commit();
    return true;
  }
  const IngestUpdate update = ingest_.read_all(attempt.attempt);
  if (!update.over) return false;
  ingest_.forget(attempt.attempt);
  if (!attempt.launch || attempt.launch->host.empty()) {
    if (std::optional<results::Launch> launch = launcher_.noted(directory.folder())) {
      launch->time = attempt.launch ? attempt.launch->time : wall_clock_seconds();
      log_launch(directory, *launch);
      results::Batch batch = store_.begin();
      batch.record_launch(attempt.attempt, *launch);
      batch.commit();
    }
  }
  return true;
}

void Run::Impl::replan(std::size_t trial) {
  settle_plan(trial, plan_trial(trials_[trial].what->config, facts_of({trial}).front(), context()));
}

void Run::Impl::adopt(const results::AttemptFacts& facts, std::size_t trial) {
  const std::string name = *launcher_.acquire_slot();
  SlotState& slot = slots_[name];
  slot.name = name;
  slot.last_over = Clock::now();
  slot.group = trials_[trial].what->config.backbone;
  live_.emplace_front(
      protocol::TrialDirectory(options_.runs, facts.attempt.trial_id, facts.attempt.number),
      metric_of(trial));
  Live& live = live_.front();
  live.place = live_.begin();
  live.attempt = facts.attempt;
  live.begun = facts.begun;
  if (facts.launch) live.launch = *facts.launch;
  live.trial = trial;
  live.slot = name;
  const std::optional<results::AttemptFacts> now =
      store_.read().attempt_facts(facts.attempt.trial_id, facts.attempt.number);
  live.started = slot.any_started = now && now->started_at.has_value();
  live.checkpointed = now && now->checkpoint.has_value();
  live.prepared = live.launched = true;
  slot.worker = launcher_.adopt(name, live.directory.folder(), facts,
                                [&slot](WorkerEnd end) { slot.end = std::move(end); });
  slot.given.push_back(&live);
  const results::Launch& launch = slot.worker->launch();
  if (live.launch.job != launch.job || live.launch.host != launch.host) launches_.insert(name);
  front_changed(slot);
  live.watch = watch_.add(live.directory.folder());
  if (live.watch >= 0) by_watch_[live.watch] = &live;
  dirty_.insert(&live);
  elsewhere_.erase(trial);
  trials_[trial].standing = Standing::taken;
  if (trials_[trial].cancelled) cancel_taken(trial);
}

// Nobody wants its result any more, and nobody would watch it.
void Run::Impl::adopt_stray(const results::AttemptFacts& facts) {
  Stray& stray = strays_.emplace_back();
  stray.facts = facts;
  stray.slot = *launcher_.acquire_slot();
  const protocol::TrialDirectory directory(options_.runs, facts.attempt.trial_id,
                                           facts.attempt.number);
  stray.worker = launcher_.adopt(stray.slot, directory.folder(), facts,
                                 [&stray](WorkerEnd end) { stray.end = std::move(end); });
  stray.worker->stop();
}

void Run::Impl::conclude_strays() {
  for (auto stray = strays_.begin(); stray != strays_.end();) {
    if (!stray->end) {
      ++stray;
      continue;
    }
    conclude_orphan(store_, ingest_, options_.runs, stray->facts,
                    "the sweep no longer has the trial: " + to_string(*stray->end),
                    wall_clock_seconds());
    stray->worker.reset();
    launcher_.release_slot(stray->slot);
    stray = strays_.erase(stray);
  }
}

// The adopted whose attempts are all over are no more.
void Run::Impl::release_orphans() {
  std::set<std::string> open;
  for (const results::AttemptFacts& attempt : store_.read().open_attempts()) {
    open.insert(attempt.begun.owner);
  }
  for (const Orphans& orphans : orphans_) {
    if (open.contains(orphans.owner)) continue;
    std::error_code ignored;
    std::filesystem::remove(orphans.lock.file(), ignored);
  }
  orphans_.clear();
  if (launcher_.queues()) launcher_.remove_left(ended_owners(store_, options_.runs, here_));
}

}  // namespace petlab::orchestrator
