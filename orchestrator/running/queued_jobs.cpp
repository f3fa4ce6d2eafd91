#include "orchestrator/running/queued_jobs.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/recovery/recovery.h"
#include "protocol/attempt_log.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

QueuedJobs::QueuedJobs(RunContext& context, RunState& state, JobQueue& queue)
    : context_(context), state_(state), queue_(queue) {
  queue_.on_launch([this](const std::string& slot) { launches_.insert(slot); });
}

void QueuedJobs::log_launches() {
  for (const std::string& name : std::exchange(launches_, {})) {
    WorkerSlot* slot = state_.slots.find(name);
    if (slot == nullptr || !slot->has_worker() || slot->given.empty()) continue;
    LiveAttempt& live = *slot->given.front();
    std::string code = std::move(live.launch.code);
    live.launch = slot->worker().launch();
    live.launch.code = std::move(code);
    live.launch.time = context_.loop.wall_seconds();
    if (const auto began = slot->worker().began()) live.began = *began;
    protocol::log_launch(live.directory, live.launch);
    fault_point("launch_logged");
    state_.attempts.note_launch(live);
  }
}

void QueuedJobs::withdraw_waiting() {
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.waits() && !slot.any_begun) slot.ask_to_stop(context_.loop.now());
  }
}

void QueuedJobs::adopt_orphans() {
  std::int64_t adopted = 0;
  const auto wanted = [this](const results::AttemptFacts& attempt) {
    return state_.trials.find(attempt.attempt.trial_id) ||
           (attempt.begun.sweep == context_.sweep.name &&
            !context_.options.left_out.contains(attempt.attempt.trial_id));
  };
  for (Orphans& orphans : take_orphans(context_.store, context_.options.runs, context_.here,
                                       context_.options.owner, wanted)) {
    for (const results::AttemptFacts& attempt : orphans.attempts) {
      if (!wanted(attempt)) continue;
      const std::optional<std::size_t> trial = state_.trials.find(attempt.attempt.trial_id);
      if (settle_without_worker(attempt)) {
        if (trial) state_.trials.replan(*trial);
      } else if (trial) {
        adopt(attempt, *trial);
        if (state_.trials.at(*trial).cancelled) {
          const bool by_rule =
              results::early_stops(context_.store.read()).contains(attempt.attempt.trial_id);
          state_.stop(*trial, by_rule ? Verdict::stopped_early : Verdict::cancelled,
                      context_.loop.now());
        }
        ++adopted;
      } else {
        adopt_stray(attempt);
      }
      fault_point("adopted");
    }
    orphans_.push_back(std::move(orphans));
  }
  if (adopted > 0) {
    context_.observer.note(fmt::format("adopted {} job(s) of a dead petlab run", adopted));
  }
  if (!strays_.empty()) {
    context_.observer.note(fmt::format(
        "cancelled {} job(s) of trials that are no longer in the sweep", strays_.size()));
  }
}

// Settles a claim without a directory, or an attempt whose worker has reported its end. Returns
// false for all others.
bool QueuedJobs::settle_without_worker(const results::AttemptFacts& attempt) {
  const protocol::TrialDirectory directory(context_.options.runs, attempt.attempt.trial_id,
                                           attempt.attempt.number);
  std::error_code error;
  if (!std::filesystem::exists(directory.folder(), error) && !error) {
    remove_unfinished_directories(directory);
    results::Batch batch = context_.store.begin();
    batch.forget_attempt(attempt.attempt);
    batch.commit();
    return true;
  }
  const IngestUpdate update = context_.ingest.read_again(attempt.attempt);
  if (!update.over) return false;
  context_.ingest.forget(attempt.attempt);
  if (!attempt.launch || attempt.launch->host.empty()) {
    if (std::optional<results::Launch> launch = queue_.noted(directory.folder())) {
      launch->time = attempt.launch ? attempt.launch->time : context_.loop.wall_seconds();
      protocol::log_launch(directory, *launch);
      results::Batch batch = context_.store.begin();
      batch.record_launch(attempt.attempt, *launch);
      batch.commit();
    }
  }
  return true;
}

void QueuedJobs::adopt(const results::AttemptFacts& facts, std::size_t trial) {
  const std::string name = *context_.launcher.acquire_slot();
  WorkerSlot& slot = state_.slots.add(name);
  slot.group = state_.trials.at(trial).what->config.backbone;
  const std::optional<results::AttemptFacts> now =
      context_.store.read().attempt_facts(facts.attempt.trial_id, facts.attempt.number);
  slot.any_begun = now && now->started_at.has_value();
  LiveAttempt& live = state_.attempts.add(
      protocol::TrialDirectory(context_.options.runs, facts.attempt.trial_id, facts.attempt.number),
      facts.attempt, state_.trials.metric_of(trial),
      slot.any_begun ? AttemptState::begun : AttemptState::given);
  live.begun = facts.begun;
  if (facts.launch) live.launch = *facts.launch;
  live.trial = trial;
  live.slot = name;
  live.reported.checkpointed = now && now->checkpoint.has_value();
  slot.serve(queue_.adopt(name, live.directory.folder(), facts,
                          [&slot](WorkerEnd end) { slot.report_end(std::move(end)); }));
  slot.given.push_back(&live);
  const results::Launch& launch = slot.worker().launch();
  if (live.launch.job != launch.job || live.launch.host != launch.host) launches_.insert(name);
  state_.slots.front_changed(slot);
  state_.attempts.watch(live);
  state_.attempts.mark_news(live);
  state_.trials.settle_assigned(trial);
}

// Stops a job whose trial is no longer in the sweep: its result is not needed, and no run would
// watch it.
void QueuedJobs::adopt_stray(const results::AttemptFacts& facts) {
  Stray& stray = strays_.emplace_back();
  stray.facts = facts;
  stray.slot = *context_.launcher.acquire_slot();
  const protocol::TrialDirectory directory(context_.options.runs, facts.attempt.trial_id,
                                           facts.attempt.number);
  stray.worker = queue_.adopt(stray.slot, directory.folder(), facts,
                              [&stray](WorkerEnd end) { stray.end = std::move(end); });
  stray.worker->stop();
}

void QueuedJobs::conclude_strays() {
  for (auto stray = strays_.begin(); stray != strays_.end();) {
    if (!stray->end) {
      ++stray;
      continue;
    }
    conclude_orphan(context_.store, context_.ingest, context_.options.runs, stray->facts,
                    "the trial is no longer in the sweep: " + to_string(*stray->end),
                    context_.loop.wall_seconds());
    stray->worker.reset();
    context_.launcher.release_slot(stray->slot);
    stray = strays_.erase(stray);
  }
}

void QueuedJobs::release_orphans() {
  std::set<std::string> open;
  for (const results::AttemptFacts& attempt : context_.store.read().open_attempts()) {
    open.insert(attempt.begun.owner);
  }
  for (const Orphans& orphans : orphans_) {
    if (open.contains(orphans.owner)) continue;
    std::error_code ignored;
    std::filesystem::remove(orphans.lock.file(), ignored);
  }
  orphans_.clear();
  queue_.remove_left(ended_owners(context_.store, context_.options.runs, context_.here));
}

}  // namespace petlab::orchestrator
