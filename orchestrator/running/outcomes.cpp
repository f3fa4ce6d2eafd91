#include "orchestrator/running/outcomes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/planning/blame.h"
#include "orchestrator/running/preparation.h"
#include "protocol/attempt_log.h"

namespace petlab::orchestrator {

using results::Outcome;
using sweeps::TrialState;

namespace {

// The most bytes read of one attempt in one turn, so that an attempt that floods its events does
// not delay the others.
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

}  // namespace

void Outcomes::read_events(Changes& changes) {
  for (LiveAttempt* live : state_.attempts.take_news()) {
    if (!live->is_over()) read_events(*live, changes);
    if (live->is_over()) remove_from_slot(*live, state_.slots.at(live->slot));
  }
}

void Outcomes::read_events(LiveAttempt& live, Changes& changes) {
  WorkerSlot& slot = state_.slots.at(live.slot);
  changes.events.push_back(context_.ingest.look(live.attempt, kMaxBytes));
  const IngestUpdate& update = changes.events.back().update();
  if (update.lines > 0) live.reported.heard = context_.loop.now();
  if (live.launch.host.empty() && slot.has_worker())
    complete_launch(live, slot.worker().launch(), changes);
  if (update.started) has_begun(live, slot);
  if (update.started && !state_.code.reported(update.started->provenance) && !update.over) {
    slot.ask_to_stop(context_.loop.now());
  }
  note_progress(live, slot, update);
  if (context_.sweep.early_stop && !update.validation.empty()) {
    changes.validated.push_back(
        {live.attempt, live.trial, update.validation, update.over.has_value()});
  }
  if (update.more) state_.attempts.mark_news(live);
  if (update.over) handle_reported_end(live, slot, *update.over, changes);
}

// A job that was given the attempt while it waited had no host yet.
void Outcomes::complete_launch(LiveAttempt& live, const results::Launch& now, Changes& changes) {
  if (now.host.empty()) return;
  live.launch.host = now.host;
  protocol::log_launch(live.directory, live.launch);
  changes.launches.push_back({live.attempt, live.launch});
}

void Outcomes::has_begun(LiveAttempt& live, WorkerSlot& slot) {
  // An adopted attempt may have begun already.
  if (live.state() != AttemptState::begun) live.become(AttemptState::begun);
  state_.trials.at(live.trial).unbegun = 0;
  (live.worker_ended ? slot.ended_with(live).any_begun : slot.any_begun) = true;
  live.reported.started_at = context_.loop.now();
  if (live.began == EventLoop::Time()) live.began = live.reported.started_at;
  live.reported.first_step = live.begun.resume ? live.begun.resume->step : 0;
  slot.launch_failures = slot.taken_away = launch_failures_ = 0;
}

void Outcomes::note_progress(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update) {
  Reported& reported = live.reported;
  if (update.progress) {
    reported.progress_at = context_.loop.now();
    if (reported.started_at == EventLoop::Time()) {  // adopted: it began under another run
      reported.started_at = reported.progress_at;
      reported.first_step = update.progress->step;
    }
    reported.progress = update.progress;
  }
  for (const protocol::Metric& metric : update.validation) reported.best.add(metric);
  const bool grew = note_memory(reported, update);
  if (shares_) shares_->memory_reported(live, slot, update, grew);
  if (update.checkpoint) reported.checkpointed = true;
}

void Outcomes::handle_reported_end(LiveAttempt& live, WorkerSlot& slot, const AttemptOver& end,
                                   Changes& changes) {
  state_.attempts.unmark_news(live);
  slot.pace.trial_ended();
  (live.worker_ended ? slot.ended_with(live).any_over : slot.any_over) = true;
  if (std::holds_alternative<protocol::Finished>(end)) {
    guard_.finished(live, slot);
    live.become(AttemptState::over);
    changes.over.push_back(live.trial);
    return;
  }
  if (std::holds_alternative<protocol::Stopped>(end)) {
    std::error_code none;
    const bool asked = std::filesystem::exists(live.directory.stop(), none);
    results::Ending ending = ending_of_stopped(live.verdict, asked);
    ending.time = context_.loop.wall_seconds();
    return conclude_attempt(live, ending, changes);
  }
  const protocol::Failed& failed = std::get<protocol::Failed>(end);
  if (failed.kind == "out_of_memory") {
    if (shares_) {
      shares_->ran_out_of_memory(live, slot);
    } else {
      state_.trials.schedule().set_alone(live.trial, false);
    }
  }
  results::Ending ending;
  ending.outcome = Outcome::failed;
  ending.reason = failed.reason;
  ending.time = context_.loop.wall_seconds();
  ending.log_tail = last_lines_of(live, slot);
  conclude_attempt(live, ending, changes);
  // After a protocol error, nothing that the worker writes is usable.
  if (failed.kind == "protocol" && !live.worker_ended) slot.kill(context_.loop.now());
  // After a device error, this process can compute nothing more. It exits by itself; being asked to
  // stop, it is killed if it does not.
  if (failed.kind == "device" && !live.worker_ended) slot.ask_to_stop(context_.loop.now());
  if (failed.kind == "device" || failed.kind == "error") guard_.failed(live, slot, failed.reason);
}

// Returns the last lines that the worker printed during this trial; empty if unknown.
std::string Outcomes::last_lines_of(const LiveAttempt& live, WorkerSlot& slot) const {
  if (live.worker_ended) {
    const auto& lines = slot.ended_with(live).end.lines_by_log;
    const auto found = lines.find(live.directory.log());
    return found != lines.end() ? found->second : std::string();
  }
  return slot.has_worker() ? slot.worker().last_lines(live.directory.log()) : std::string();
}

void Outcomes::conclude_attempt(LiveAttempt& live, const results::Ending& ending,
                                Changes& changes) {
  protocol::log_ending(live.directory, ending);
  fault_point("ending_logged");
  changes.endings.push_back({live.attempt, ending});
  changes.over.push_back(live.trial);
  live.become(AttemptState::over);
}

void Outcomes::conclude_ended(WorkerSlot& slot, Changes& changes) {
  for (auto ended = slot.ended.begin(); ended != slot.ended.end();) {
    ended = conclude_worker(slot, *ended, changes) ? slot.ended.erase(ended) : std::next(ended);
  }
}

// Judges a worker that is gone, once everything that its attempts have written is read. Returns
// false if one turn cannot read all of it.
bool Outcomes::conclude_worker(WorkerSlot& slot, EndedWorker& ended, Changes& changes) {
  const std::deque<LiveAttempt*> given = ended.given;
  for (LiveAttempt* live : given) {
    if (!live->is_over() && !state_.attempts.has_news(*live)) read_events(*live, changes);
  }
  const bool all_read = std::none_of(given.begin(), given.end(), [this](const LiveAttempt* live) {
    return state_.attempts.has_news(*live);
  });
  if (!all_read) return false;

  std::vector<LiveAttempt*> unfinished;
  std::vector<UnfinishedAttempt> known;
  for (LiveAttempt* live : given) {
    if (live->is_over()) continue;
    unfinished.push_back(live);
    known.push_back(
        {live->state() == AttemptState::begun, live->reported.checkpointed, live->verdict});
  }
  const Blame blame =
      blame_for(ended.end,
                {ended.asked_to_stop, ended.any_begun, context_.options.time_limit,
                 context_.options.no_progress_limit, ended.any_given, ended.any_over},
                known);
  const std::string what = "the worker ended with " + to_string(ended.end);
  const std::string lines = ended.end.last_lines;
  switch (blame.launch) {
    case LaunchBlame::none:
      break;
    case LaunchBlame::refused:
      state_.course.problem = to_string(ended.end);
      break;
    case LaunchBlame::taken_away:
      slot.not_before =
          context_.loop.now() + backoff(context_.options.retry_delay, ++slot.taken_away);
      break;
    case LaunchBlame::failed:
      launch_failed(slot, what, lines);
      break;
  }
  if (blame.never_begun) never_begun(*unfinished[*blame.never_begun], slot, what, lines);
  for (const std::size_t at : blame.to_try_alone) {
    state_.trials.schedule().set_alone(unfinished[at]->trial, false);
  }
  const double time = context_.loop.wall_seconds();
  for (std::size_t at = 0; at < unfinished.size(); ++at) {
    results::Ending ending = blame.endings[at];
    ending.time = time;
    const bool died = ending.outcome == Outcome::crashed || ending.outcome == Outcome::stalled;
    // A slot counts the failed launches on its GPU. Hosts of a cluster have no slots of their own,
    // so DeviceGuard counts theirs.
    const bool unbegun = blame.never_begun == at && context_.launcher.queue() != nullptr;
    if (died || unbegun) guard_.failed(*unfinished[at], slot, ending.reason);
    conclude_attempt(*unfinished[at], ending, changes);
  }
  for (LiveAttempt* live : given) remove_from_slot(*live, slot);
  return true;
}

// Skips a trial in this run after three workers in a row ended before beginning it. Otherwise it
// would be given to workers forever. If all three were in one slot, which is therefore disabled, a
// worker in another slot gets one more try, to show whether the slot or the trial is to blame.
void Outcomes::never_begun(const LiveAttempt& live, const WorkerSlot& slot, const std::string& what,
                           const std::string& lines) {
  SweepMember& member = state_.trials.at(live.trial);
  const bool on_one_slot = member.unbegun == 0 || member.unbegun_on == slot.name;
  member.unbegun_on = on_one_slot ? slot.name : "";
  if (++member.unbegun != kLaunchFailuresThatStop) return;
  const bool others =
      state_.slots.any([](const WorkerSlot& other) { return !other.broken && !other.is_lost(); });
  if (on_one_slot && slot.broken && others) {
    --member.unbegun;
    return;
  }
  const std::string message = fmt::format(
      "{}: skipped in this run; three workers in a row exited before starting it: {}{}{}",
      live.attempt.trial_id, what, lines.empty() ? "" : "\n", lines);
  context_.observer.note(message);
  if (state_.course.left.empty()) state_.course.left = message;
}

void Outcomes::launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines) {
  ++slot.launch_failures;
  ++launch_failures_;
  slot.retired = false;  // keeps the slot, which counts its failures
  slot.not_before =
      context_.loop.now() + backoff(context_.options.retry_delay, slot.launch_failures);
  LaunchFailures failures;
  failures.of_slot = slot.launch_failures;
  failures.of_run = launch_failures_;
  failures.slots = context_.options.slots;
  failures.any_trial_runs = state_.slots.any(
      [](const WorkerSlot& other) { return other.has_worker() && other.any_begun; });
  failures.queue = context_.launcher.queue() != nullptr;
  const AfterLaunchFailure after = after_launch_failure(failures);
  const std::string output = lines.empty() ? "" : "\n" + lines;
  if (after.stop_run && state_.course.problem.empty()) {
    const std::string who =
        failures.queue ? "three jobs" : fmt::format("{} workers", launch_failures_);
    state_.course.problem =
        fmt::format("{} in a row exited before starting a trial: {}{}", who, what, output);
  }
  if (!after.stop_slot) return;
  slot.broken = true;
  const std::string message = fmt::format(
      "slot {} is disabled: three workers in a row exited before starting a trial: {}{}", slot.name,
      what, output);
  context_.observer.note(message);
  if (!state_.slots.any(
          [](const WorkerSlot& other) { return !other.broken && !other.is_lost(); })) {
    state_.course.problem = message;
  }
}

void Outcomes::give_up(WorkerSlot& slot) {
  slot.give_up();
  std::vector<std::string> trials;
  for (LiveAttempt* live : std::deque<LiveAttempt*>(slot.given)) {
    trials.push_back(live->attempt.trial_id);
    state_.trials.settle_left(live->trial);
    remove_from_slot(*live, slot);
  }
  const std::string message = fmt::format(
      "slot {}: worker {} was killed but does not exit: it waits in the kernel, perhaps for a "
      "device or a file server. The slot stays disabled{}{}",
      slot.name, slot.worker().launch().pid,
      trials.empty() ? "" : "; skipped in this run: ", fmt::join(trials, ", "));
  context_.observer.note(message);
  const bool any_other =
      state_.slots.any([](const WorkerSlot& other) { return !other.broken && !other.is_lost(); });
  std::string& why = any_other ? state_.course.left : state_.course.problem;
  if (why.empty()) why = message;
}

bool Outcomes::any_unstarted(const WorkerSlot& slot) const {
  return std::any_of(slot.ready.begin(), slot.ready.end(), [&](const LiveAttempt* live) {
    return reaches_no_worker(state_, guard_, slot, *live);
  });
}

std::string Outcomes::why_unstarted(const WorkerSlot& slot) const {
  if (state_.course.phase != Course::Phase::running)
    return "the run was stopped before the trial started";
  if (!state_.course.problem.empty()) return "an error ended the run before the trial started";
  return fmt::format("slot {} was disabled before the trial started", slot.name);
}

void Outcomes::conclude_unstarted(WorkerSlot& slot, Changes& changes) {
  for (LiveAttempt* live : std::deque<LiveAttempt*>(slot.ready)) {
    if (!reaches_no_worker(state_, guard_, slot, *live)) continue;
    if (live->state() == AttemptState::claimed) prepare(context_, state_, *live);
    if (live->state() == AttemptState::vanished) {
      // The checkpoint existed when the trial was planned. Its writer, which was considered dead,
      // has removed it since.
      context_.observer.note(fmt::format("{}: checkpoint {} no longer exists; planned again",
                                         live->attempt.trial_id, live->resume_from.string()));
      changes.withdrawn.push_back({live->attempt, live->trial});
    } else {
      const bool cancelled = live->verdict == Verdict::cancelled;
      results::Ending ending;
      ending.outcome = cancelled ? Outcome::cancelled : Outcome::never_started;
      ending.reason = cancelled ? kCancelledByUser : why_unstarted(slot);
      ending.time = context_.loop.wall_seconds();
      conclude_attempt(*live, ending, changes);
    }
    remove_from_slot(*live, slot);
  }
}

void Outcomes::settle(const Changes& changes) {
  const auto each_plan = [this](const std::vector<std::size_t>& trials, const auto& take) {
    if (trials.empty()) return;
    const std::vector<results::TrialFacts> facts = state_.trials.facts_of(trials);
    for (std::size_t at = 0; at < trials.size(); ++at) {
      take(trials[at], state_.trials.plan_from(trials[at], facts[at]));
    }
  };
  std::vector<std::size_t> unclaimed;
  for (const Changes::Withdrawn& withdrawn : changes.withdrawn)
    unclaimed.push_back(withdrawn.trial);
  each_plan(unclaimed, [this](std::size_t trial, TrialPlan plan) {
    state_.trials.settle(trial, std::move(plan));
  });
  each_plan(changes.over, [this](std::size_t trial, const TrialPlan& plan) {
    const bool done = plan.state == TrialState::done;
    if (done) ++finished_here_;
    state_.trials.settle(trial, plan);
    if (plan.state == TrialState::running) return;  // another petlab has it already
    context_.observer.trial_over(state_.trials.at(trial).id(), plan.state,
                                 done ? std::string() : plan.why, plan.last_lines);
  });
  guard_.settle_committed();
}

void Outcomes::remove_from_slot(const LiveAttempt& live, WorkerSlot& slot) {
  context_.ingest.forget(live.attempt);
  const bool was_front = !slot.given.empty() && slot.given.front() == &live;
  std::erase(slot.given, &live);
  std::erase(slot.ready, &live);
  for (EndedWorker& ended : slot.ended) std::erase(ended.given, &live);
  if (was_front) state_.slots.front_changed(slot);
  state_.attempts.remove(live);
}

}  // namespace petlab::orchestrator
