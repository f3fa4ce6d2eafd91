#include "orchestrator/running/queued_jobs.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/recovery/recovery.h"
#include "protocol/attempt_log.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

void QueuedJobs::adopt_orphans() {
  if (!std::exchange(removed_left_, true)) remove_left();
  jobs_adopted_.clear();
  const std::size_t strays_before = strays_.size();
  const auto wanted = [this](const results::AttemptFacts& attempt) {
    return state_.trials.find(attempt.attempt.trial_id) ||
           (attempt.begun.sweep == context_.input.sweep.name &&
            !context_.input.options.left_out.contains(attempt.attempt.trial_id));
  };
  for (Orphans& orphans : take_orphans(context_.store, context_.input.options.runs, context_.here,
                                       context_.input.options.owner, wanted)) {
    std::vector<LeftJob> left = queue_.take_left(orphans.owner);
    record_launches(left, orphans.attempts);
    OpenAttempts open;
    for (const results::AttemptFacts& attempt : orphans.attempts) {
      if (wanted(attempt) && settle_without_worker(attempt)) {
        replan(attempt);
      } else {
        open.emplace(directory_of(attempt).folder(), OpenAttempt{attempt, wanted(attempt)});
      }
    }
    for (LeftJob& job : left) adopt(job, open);
    // These never reached a job.
    for (const auto& [folder, one] : open) {
      if (!one.wanted) continue;
      conclude_orphan(context_.store, context_.ingest, context_.input.options.runs, one.facts,
                      fmt::format("its orchestrator ({}) died", orphans.owner),
                      context_.loop.wall_seconds());
      replan(one.facts);
    }
    orphans_.push_back(std::move(orphans));
  }
  if (!jobs_adopted_.empty()) {
    context_.observer.note(
        fmt::format("adopted {} job(s) of a dead petlab run", jobs_adopted_.size()));
  }
  if (strays_.size() > strays_before) {
    context_.observer.note(
        fmt::format("cancelled {} job(s) of trials that are no longer in the sweep",
                    strays_.size() - strays_before));
  }
}

protocol::TrialDirectory QueuedJobs::directory_of(const results::AttemptFacts& facts) const {
  return {context_.input.options.runs, facts.attempt.trial_id, facts.attempt.number};
}

void QueuedJobs::replan(const results::AttemptFacts& facts) {
  const std::optional<std::size_t> trial = state_.trials.find(facts.attempt.trial_id);
  if (trial) state_.trials.replan(*trial);
}

// Stores the launches that a dead run had logged, or had not come to log, and the hosts of jobs
// that it gave attempts while they waited.
void QueuedJobs::record_launches(const std::vector<LeftJob>& left,
                                 std::vector<results::AttemptFacts>& attempts) {
  std::map<std::filesystem::path, const LeftJob*> jobs;  // by attempt folder
  for (const LeftJob& job : left) {
    for (const std::filesystem::path& folder : job.given) jobs[folder] = &job;
  }
  results::Batch batch = context_.store.begin();
  for (results::AttemptFacts& facts : attempts) {
    const protocol::TrialDirectory directory = directory_of(facts);
    const auto found = jobs.find(directory.folder());
    if (found == jobs.end() || !std::filesystem::exists(directory.folder())) continue;
    const LeftJob& job = *found->second;
    // The database has no digests of code in a launch, so the log's goes first.
    std::optional<results::Launch> logged = protocol::read_attempt_log(directory).launch;
    if (!logged) logged = facts.launch;
    if (!logged && job.job.empty()) continue;
    results::Launch launch = logged.value_or(results::Launch());
    if (!logged) launch.time = context_.loop.wall_seconds();
    if (launch.job.empty()) launch.job = job.job;
    if (launch.host.empty()) launch.host = job.host;
    const bool is_stored =
        facts.launch && facts.launch->job == launch.job && facts.launch->host == launch.host;
    if (!is_stored) {
      if (logged != launch) protocol::log_launch(directory, launch);
      batch.record_launch(facts.attempt, launch);
    }
    facts.launch = launch;
  }
  batch.commit();
}

// Settles a claim without a directory, or an attempt whose worker has reported its end. Returns
// false for all others.
bool QueuedJobs::settle_without_worker(const results::AttemptFacts& attempt) {
  const protocol::TrialDirectory directory = directory_of(attempt);
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
  return true;
}

// Takes over a job with its open attempts, and removes these from `open`. The job gets no others:
// this run may have another worker, or other options for its jobs.
void QueuedJobs::adopt(LeftJob& job, OpenAttempts& open) {
  std::vector<results::AttemptFacts> attempts;
  bool any_stray = false;
  for (const std::filesystem::path& folder : job.given) {
    const auto found = open.find(folder);
    if (found == open.end()) continue;
    if (found->second.wanted) {
      any_stray = any_stray || !state_.trials.find(found->second.facts.attempt.trial_id);
      attempts.push_back(found->second.facts);
    } else {
      job.has_others = true;
    }
    open.erase(found);
  }
  if (attempts.empty()) {
    if (!job.has_others) queue_.dismiss(job);
    return;
  }
  const std::string name = *context_.launcher.acquire_slot(1);
  if (any_stray) {
    adopt_stray(job, name, std::move(attempts));
  } else {
    adopt(job, name, attempts);
    jobs_adopted_.emplace(job.name, job.array_task);
  }
  fault_point("adopted");
}

void QueuedJobs::adopt(const LeftJob& job, const std::string& name,
                       const std::vector<results::AttemptFacts>& attempts) {
  WorkerSlot& slot = state_.slots.add(name);
  slot.serve(queue_.adopt(name, job, [&slot](WorkerEnd end) { slot.report_end(std::move(end)); }),
             "");
  slot.close(context_.loop.now());
  for (const results::AttemptFacts& facts : attempts) {
    const std::size_t trial = *state_.trials.find(facts.attempt.trial_id);
    slot.group = state_.trials.at(trial).what->config.backbone;
    const std::optional<results::AttemptFacts> now =
        context_.store.read().attempt_facts(facts.attempt.trial_id, facts.attempt.number);
    const bool begun = now && now->started_at.has_value();
    slot.served.begun = slot.served.begun || begun;
    LiveAttempt& live =
        state_.attempts.add(directory_of(facts), facts.attempt, state_.trials.metric_of(trial),
                            begun ? AttemptState::begun : AttemptState::given);
    live.begun = facts.begun;
    live.launch = facts.launch.value_or(slot.worker().launch());
    live.trial = trial;
    live.slot = name;
    live.reported.checkpointed = now && now->checkpoint.has_value();
    slot.give(live, context_.loop.now());
    if (slot.given.size() == 1) {
      state_.slots.front_changed(slot);
      if (begun) {
        const std::chrono::duration<double> ran(context_.loop.wall_seconds() - *now->started_at);
        live.began -= std::chrono::duration_cast<EventLoop::Clock::duration>(ran);
      }
    }
    if (!facts.launch) {
      live.launch.time = context_.loop.wall_seconds();
      protocol::log_launch(live.directory, live.launch);
      state_.attempts.note_launch(live);
    }
    state_.attempts.watch(live);
    state_.attempts.mark_news(live);
    state_.trials.settle_assigned(trial);
    if (!state_.trials.at(trial).cancelled) continue;
    const bool by_rule =
        results::early_stops(context_.store.read()).contains(facts.attempt.trial_id);
    state_.stop(trial, by_rule ? Verdict::stopped_early : Verdict::cancelled, context_.loop.now());
  }
}

// Stops a job with a trial that is no longer in the sweep: its result is not needed, and no run
// would watch it.
void QueuedJobs::adopt_stray(const LeftJob& job, const std::string& name,
                             std::vector<results::AttemptFacts> attempts) {
  Stray& stray = strays_.emplace_back();
  stray.attempts = std::move(attempts);
  stray.slot = name;
  stray.worker = queue_.adopt(name, job, [&stray](WorkerEnd end) { stray.end = std::move(end); });
  stray.worker->stop();
}

void QueuedJobs::conclude_strays() {
  for (auto stray = strays_.begin(); stray != strays_.end();) {
    if (!stray->end) {
      ++stray;
      continue;
    }
    for (const results::AttemptFacts& facts : stray->attempts) {
      conclude_orphan(context_.store, context_.ingest, context_.input.options.runs, facts,
                      "a trial of its job is no longer in the sweep: " + to_string(*stray->end),
                      context_.loop.wall_seconds());
      replan(facts);
    }
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
  remove_left();
}

void QueuedJobs::remove_left() {
  queue_.remove_left(ended_owners(context_.store, context_.input.options.runs, context_.here));
}

}  // namespace petlab::orchestrator
