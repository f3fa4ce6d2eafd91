#include "orchestrator/running/outcomes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/invariant.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/running/preparation.h"
#include "protocol/attempt_log.h"

namespace petlab::orchestrator {

using sweeps::TrialState;

namespace {

// The most bytes read of one attempt in one turn, so that an attempt that floods its events does
// not delay the others.
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

TurnAttempt of(const LiveAttempt& live) { return {live.attempt, live.trial, live.slot}; }

}  // namespace

Turn Outcomes::look() {
  Turn turn;
  turn.time = context_.loop.wall_seconds();
  turn.queue = context_.launcher.queue() != nullptr;
  try {
    look(turn);
  } catch (...) {
    turn.error = std::current_exception();
  }
  return turn;
}

void Outcomes::look(Turn& turn) {
  for (const LiveAttempt* live : state_.attempts.take_launched()) {
    turn.launches.push_back({live->attempt, live->launch});
  }
  for (LiveAttempt* live : state_.attempts.take_news()) read_events(*live, turn);
  for (auto& [name, slot] : state_.slots.all()) {
    for (auto ended = slot.ended.begin(); ended != slot.ended.end();) {
      ended = look_at_ended(slot, *ended, turn) ? slot.ended.erase(ended) : std::next(ended);
    }
    look_at_unstarted(slot, turn);
    slot.pace.learn(context_.loop.now());
  }
}

void Outcomes::read_events(LiveAttempt& live, Turn& turn) {
  if (live.is_over()) return;
  WorkerSlot& slot = state_.slots.at(live.slot);
  turn.events.push_back(context_.ingest.look(live.attempt, kMaxBytes));
  const IngestUpdate& update = turn.events.back().update();
  if (update.lines > 0) live.reported.heard = context_.loop.now();
  if (live.launch.host.empty() && slot.has_worker())
    complete_launch(live, slot.worker().launch(), turn);
  if (update.started) has_begun(live, slot);
  if (update.started && !state_.code.reported(update.started->provenance) && !update.over) {
    slot.ask_to_stop(context_.loop.now());
  }
  note_progress(live, slot, update);
  if (context_.input.sweep.early_stop && !update.validation.empty()) {
    turn.validated.push_back({of(live), update.validation, update.over.has_value()});
  }
  if (update.more) state_.attempts.mark_news(live);
  if (update.over) note_end(live, slot, *update.over, turn);
}

// A job that was given the attempt while it waited had no host yet.
void Outcomes::complete_launch(LiveAttempt& live, const results::Launch& now, Turn& turn) {
  if (now.host.empty()) return;
  live.launch.host = now.host;
  protocol::log_launch(live.directory, live.launch);
  turn.launches.push_back({live.attempt, live.launch});
}

void Outcomes::has_begun(LiveAttempt& live, WorkerSlot& slot) {
  // An adopted attempt may have begun already.
  if (live.state() != AttemptState::begun) live.become(AttemptState::begun);
  state_.trials.at(live.trial).unbegun = 0;
  (live.worker_ended ? slot.ended_with(live).served.begun : slot.served.begun) = true;
  live.reported.started_at = context_.loop.now();
  if (live.began == EventLoop::Time()) live.began = live.reported.started_at;
  live.reported.first_step = live.begun.resume ? live.begun.resume->step : 0;
  slot.health.launch_failures = slot.health.taken_away = launch_failures_ = 0;
  failed_jobs_.clear();
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

void Outcomes::note_end(LiveAttempt& live, WorkerSlot& slot, const AttemptOver& end, Turn& turn) {
  live.become(AttemptState::over);
  state_.attempts.unmark_news(live);
  slot.pace.trial_ended();
  (live.worker_ended ? slot.ended_with(live).served.over : slot.served.over) = true;
  std::error_code none;
  const bool asked = std::holds_alternative<protocol::Stopped>(end) &&
                     std::filesystem::exists(live.directory.stop(), none);
  const bool failed = std::holds_alternative<protocol::Failed>(end);
  turn.reported.push_back({of(live), end, live.verdict, asked, live.worker_ended,
                           failed ? last_lines_of(live, slot) : std::string()});
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

// Reads what an ended worker's attempts have written. Returns false if one turn cannot read all of
// it: the end is judged once everything is read.
bool Outcomes::look_at_ended(const WorkerSlot& slot, const EndedWorker& ended, Turn& turn) {
  for (LiveAttempt* live : ended.given) {
    if (!state_.attempts.has_news(*live)) read_events(*live, turn);
  }
  const auto any_news = [this](const LiveAttempt* live) { return state_.attempts.has_news(*live); };
  if (std::any_of(ended.given.begin(), ended.given.end(), any_news)) return false;
  Turn::Gone gone;
  gone.slot = slot.name;
  gone.job = ended.job;
  gone.end = ended.end;
  gone.worker = {ended.asked_to_stop,
                 ended.served.begun,
                 context_.input.options.time_limit,
                 context_.input.options.no_progress_limit,
                 ended.served.given,
                 ended.served.over};
  for (const LiveAttempt* live : ended.given) {
    if (live->is_over()) continue;
    gone.attempts.push_back(of(*live));
    gone.known.push_back({live->state() == AttemptState::begun, live->reported.checkpointed,
                          live->verdict, live->in_gang});
  }
  turn.gone.push_back(std::move(gone));
  return true;
}

void Outcomes::carry_out(const Changes& changes) {
  std::set<std::int64_t> over;
  for (const Changes::End& end : changes.ends) {
    const results::AttemptRef& attempt = end.of.attempt;
    PETLAB_INVARIANT(
        over.insert(attempt.key).second,
        fmt::format("attempt {} of {} ends twice in one turn", attempt.number, attempt.trial_id));
  }
  for (const Changes::WorkerEnded& worker : changes.workers) carry_out(worker);
  for (const Changes::End& end : changes.ends) carry_out(end);
  for (const TurnAttempt& claim : changes.withdrawn) {
    remove_from_slot(state_.attempts.at(claim.attempt), state_.slots.at(claim.slot));
  }
}

void Outcomes::carry_out(const Changes::WorkerEnded& worker) {
  WorkerSlot& slot = state_.slots.at(worker.slot);
  const std::string what = "the worker ended with " + worker.how;
  switch (worker.blame) {
    case LaunchBlame::none:
      break;
    case LaunchBlame::refused:
      state_.course.problem = worker.how;
      break;
    case LaunchBlame::taken_away:
      slot.health.not_before = context_.loop.now() + backoff(context_.input.options.retry_delay,
                                                             ++slot.health.taken_away);
      break;
    case LaunchBlame::failed:
      launch_failed(slot, what, worker.lines, worker.job);
      break;
  }
  if (worker.never_begun) never_begun(*worker.never_begun, slot, what, worker.lines);
}

void Outcomes::carry_out(const Changes::End& end) {
  using End = Changes::End;
  LiveAttempt& live = state_.attempts.at(end.of.attempt);
  WorkerSlot& slot = state_.slots.at(end.of.slot);
  if (end.ending) {
    protocol::log_ending(live.directory, *end.ending);
    fault_point("ending_logged");
  }
  if (!live.is_over()) live.become(AttemptState::over);
  if (end.retry == End::Retry::out_of_memory && shares_) {
    shares_->ran_out_of_memory(live, slot);
  } else if (end.retry != End::Retry::usual) {
    state_.trials.schedule().set_alone(end.of.trial, false);
  }
  if (end.worker == End::WorkerNext::stops) slot.ask_to_stop(context_.loop.now());
  if (end.worker == End::WorkerNext::dies) slot.kill(context_.loop.now());
  if (end.device == End::Device::works) guard_.finished(live, slot);
  if (end.device == End::Device::failed) guard_.failed(live, slot, end.ending->reason);
  remove_from_slot(live, slot);
}

// Skips a trial in this run after three workers in a row ended before beginning it. Otherwise it
// would be given to workers forever. If all three were in one slot, which is therefore disabled, a
// worker in another slot gets one more try, to show whether the slot or the trial is to blame.
void Outcomes::never_begun(const TurnAttempt& attempt, const WorkerSlot& slot,
                           const std::string& what, const std::string& lines) {
  SweepMember& member = state_.trials.at(attempt.trial);
  const bool on_one_slot = member.unbegun == 0 || member.unbegun_on == slot.name;
  member.unbegun_on = on_one_slot ? slot.name : "";
  if (++member.unbegun != kLaunchFailuresThatStop) return;
  const bool others = state_.slots.any(
      [](const WorkerSlot& other) { return !other.health.broken && !other.is_lost(); });
  if (on_one_slot && slot.health.broken && others) {
    --member.unbegun;
    return;
  }
  const std::string message = fmt::format(
      "{}: skipped in this run; three workers in a row exited before starting it: {}{}{}",
      member.id(), what, lines.empty() ? "" : "\n", lines);
  context_.observer.note(message);
  if (state_.course.left.empty()) state_.course.left = message;
}

void Outcomes::launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines,
                             const std::string& job) {
  ++slot.health.launch_failures;
  // All workers of a job may fail for one reason, such as a bad node.
  if (job.empty() || failed_jobs_.insert(job).second) ++launch_failures_;
  slot.health.retired = false;  // keeps the slot, which counts its failures
  slot.health.not_before = context_.loop.now() +
                           backoff(context_.input.options.retry_delay, slot.health.launch_failures);
  LaunchFailures failures;
  failures.of_slot = slot.health.launch_failures;
  failures.of_run = launch_failures_;
  failures.slots = context_.input.options.slots;
  failures.any_trial_runs = state_.slots.any(
      [](const WorkerSlot& other) { return other.has_worker() && other.served.begun; });
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
  slot.health.broken = true;
  const std::string message = fmt::format(
      "slot {} is disabled: three workers in a row exited before starting a trial: {}{}", slot.name,
      what, output);
  context_.observer.note(message);
  if (!state_.slots.any(
          [](const WorkerSlot& other) { return !other.health.broken && !other.is_lost(); })) {
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
  const bool any_other = state_.slots.any(
      [](const WorkerSlot& other) { return !other.health.broken && !other.is_lost(); });
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

void Outcomes::look_at_unstarted(const WorkerSlot& slot, Turn& turn) {
  for (LiveAttempt* live : slot.ready) {
    if (!reaches_no_worker(state_, guard_, slot, *live)) continue;
    if (live->state() == AttemptState::claimed) prepare(context_, state_, *live);
    if (live->state() == AttemptState::vanished) {
      // The checkpoint existed when the trial was planned. Its writer, which was considered dead,
      // has removed it since.
      context_.observer.note(fmt::format("{}: checkpoint {} no longer exists; planned again",
                                         live->attempt.trial_id,
                                         checkpoint_of(state_, *live).string()));
      turn.vanished.push_back(of(*live));
    } else {
      turn.unstarted.push_back(
          {of(*live), live->verdict == Verdict::cancelled, why_unstarted(slot)});
    }
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
  for (const TurnAttempt& claim : changes.withdrawn) unclaimed.push_back(claim.trial);
  each_plan(unclaimed, [this](std::size_t trial, TrialPlan plan) {
    state_.trials.settle(trial, std::move(plan));
  });
  std::vector<std::size_t> over;
  for (const Changes::End& end : changes.ends) over.push_back(end.of.trial);
  each_plan(over, [this](std::size_t trial, const TrialPlan& plan) {
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
