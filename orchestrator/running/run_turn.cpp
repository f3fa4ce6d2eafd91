// One turn of Run's loop: all that workers wrote and all that ended goes into one transaction with
// the next claims; only when that is committed do directories and workers follow. What short trials
// do within kGroup goes into one transaction, while workers go on with what was claimed before.
// Other processes wait for the transaction, so files are read and written before it, and it only
// stores what came of that (to_store_).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/attempt_log.h"
#include "orchestrator/running/run_impl.h"

namespace petlab::orchestrator {

using results::Outcome;
using sweeps::TrialState;

namespace {

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

// The next trial can begin before this end is concluded: nothing in it can change what is to run.
bool Run::Impl::Gone::clean() const {
  const Exited* exited = std::get_if<Exited>(&end.how);
  return exited != nullptr && exited->code == 0 && !asked_to_stop && given.size() <= 1;
}

bool Run::Impl::claiming() const { return phase_ == Phase::running && problem_.empty(); }

bool Run::Impl::has_news() const {
  if (!dirty_.empty() || (launcher_.queues() && !launched_.empty())) return true;
  return std::any_of(slots_.begin(), slots_.end(), [this](const auto& entry) {
    const SlotState& slot = entry.second;
    return slot.end || !slot.gone.empty() ||
           std::any_of(slot.ready.begin(), slot.ready.end(),
                       [&](const Live* live) { return to_give_back(slot, *live); });
  });
}

bool Run::Impl::transaction_due(Clock::time_point now) const {
  const bool claims = can_claim(now);
  if (!claims && !has_news()) return false;
  if (!claiming() || now - committed_ >= kGroup) return true;
  return claims && std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
           return takes_claims(entry.second, now) && runs_dry(entry.second);
         });
}

void Run::Impl::turn() {
  const Clock::time_point now = Clock::now();
  conclude_strays();
  log_launches();
  if (!claiming()) withdraw_waiting();
  if (now >= next_look_elsewhere()) look_elsewhere();
  if (claiming()) launcher_.shares_devices() ? acquire_shares() : acquire_slots();
  for (auto& [name, slot] : slots_) {
    set_ended_aside(slot);
    give(slot);
  }
  if (transaction_due(now)) {
    transact(now);
    for (auto& [name, slot] : slots_) give(slot);
  }
  launcher_.flush();
  close_idle_workers();
}

void Run::Impl::transact(Clock::time_point now) {
  std::vector<std::pair<SlotState*, std::size_t>> chosen;
  const bool news = has_news();
  if (!news) choose(chosen, now);
  fruitless_ = !news && chosen.empty();
  if (fruitless_) return;
  record_launches();
  if (news) {
    read_events();
    for (auto& [name, slot] : slots_) {
      for (auto gone = slot.gone.begin(); gone != slot.gone.end();) {
        gone = conclude_worker(slot, *gone) ? slot.gone.erase(gone) : std::next(gone);
      }
      give_ready_back(slot);
      learn_pace(slot, now);
    }
    choose(chosen, now);
  }
  std::vector<std::int64_t> at_least;
  for (const auto& [slot, trial] : chosen) {
    at_least.push_back(highest_attempt_directory(options_.runs, trials_[trial].what->id.value) + 1);
  }
  results::Batch batch = store_.begin();
  for (const auto& write : std::exchange(to_store_, {})) write(batch);
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    claim(*chosen[at].first, chosen[at].second, at_least[at], batch);
  }
  fault_point("before_commit");
  batch.commit();
  fault_point("committed");
  committed_ = Clock::now();
  plan_concluded();
  for (auto& [trial, plan] : std::exchange(over_, {})) settle_over(trial, std::move(plan));
}

// Planned from the database, as the next start would.
void Run::Impl::plan_concluded() {
  const std::vector<std::size_t> concluded = std::exchange(concluded_, {});
  const std::vector<std::size_t> taken_back = std::exchange(taken_back_, {});
  if (concluded.empty() && taken_back.empty()) return;
  const PlanContext how = context();
  const auto plan = [&](std::size_t trial, const results::TrialFacts& facts) {
    return plan_trial(trials_[trial].what->config, facts, how);
  };
  std::vector<results::TrialFacts> facts = facts_of(concluded);
  for (std::size_t at = 0; at < concluded.size(); ++at) {
    over_.emplace_back(concluded[at], plan(concluded[at], facts[at]));
  }
  facts = facts_of(taken_back);
  for (std::size_t at = 0; at < taken_back.size(); ++at) {
    settle_plan(taken_back[at], plan(taken_back[at], facts[at]));
  }
}

void Run::Impl::set_ended_aside(SlotState& slot) {
  if (!slot.end) return;
  for (Live* live : slot.given) live->gone = true;
  if (!slot.given.empty()) {
    slot.gone.push_back({std::exchange(slot.given, {}), std::move(*slot.end), slot.any_started,
                         slot.asked_to_stop});
  }
  slot.worker.reset();
  slot.end.reset();
  slot.any_started = slot.closing = slot.asked_to_stop = false;
  slot.group.clear();
  // A new worker begins with nothing, so its share has no part in what this one needed.
  slot.retired = launcher_.shares_devices();
  slot.to_reserve.reset();
  report_front(slot);
}

void Run::Impl::record_launches() {
  for (const Live* live : std::exchange(launched_, {})) {
    to_store_.push_back([attempt = live->attempt, launch = live->launch](results::Batch& batch) {
      batch.record_launch(attempt, launch);
    });
  }
}

void Run::Impl::read_events() {
  const std::set<Live*> dirty = std::exchange(dirty_, {});
  for (Live* live : dirty) {
    if (!live->over) read_events(*live);
    SlotState& slot = slots_.at(live->slot);
    if (live->over) take_out(*live, slot);
  }
}

void Run::Impl::read_events(Live& live) {
  SlotState& slot = slots_.at(live.slot);
  const auto events = std::make_shared<NewEvents>(ingest_.look(live.attempt, kMaxBytes));
  const IngestUpdate& update = events->update();
  to_store_.push_back([this, events](results::Batch& batch) {
    ingest_.store(batch, *events);
    fault_point("events_read");
  });
  if (update.lines > 0) live.heard = Clock::now();
  if (update.started) {
    live.started = true;
    trials_[live.trial].unbegun = 0;
    (live.gone ? gone_with(live, slot)->any_started : slot.any_started) = true;
    live.started_at = Clock::now();
    live.first_step = live.begun.resume ? live.begun.resume->step : 0;
    slot.launch_failures = slot.taken_away = launch_failures_ = 0;
    if (launcher_.queues() && live.launch.host.empty()) record_noted(live);
  }
  if (update.progress) {
    live.progress_at = Clock::now();
    if (live.started_at == Clock::time_point()) {  // adopted: it began in another run's time
      live.started_at = live.progress_at;
      live.first_step = update.progress->step;
    }
    live.progress = update.progress;
  }
  for (const protocol::Metric& metric : update.validation) live.best.add(metric);
  memory_reported(live, slot, update);
  if (update.checkpoint) live.checkpointed = true;
  if (update.more) dirty_.insert(&live);
  if (!update.over) return;
  live.over = true;
  dirty_.erase(&live);
  Trial& trial = trials_[live.trial];
  ++slot.overs;
  if (std::holds_alternative<protocol::Finished>(*update.over)) {
    TrialPlan plan = trial.plan;
    plan.state = TrialState::done;
    plan.latest = live.attempt.number;
    plan.why = fmt::format("finished in attempt {}", live.attempt.number);
    over_.emplace_back(live.trial, std::move(plan));
    return;
  }
  const protocol::Failed& failed = std::get<protocol::Failed>(*update.over);
  if (failed.kind == "out_of_memory") ran_out_of_memory(live, slot);
  results::Ending ending;
  ending.outcome = Outcome::failed;
  ending.reason = failed.reason;
  ending.time = wall_clock_seconds();
  ending.log_tail = last_lines_of(live, slot);
  conclude_attempt(live, ending);
  // It does not know where it is any more: what it would write next cannot be believed either.
  if (failed.kind == "protocol" && !live.gone && slot.worker && !slot.end) {
    slot.asked_to_stop = true;
    slot.asked_at = Clock::now();
    slot.worker->kill();
  }
}

// What the worker printed while it was at this trial, where that is known.
std::string Run::Impl::last_lines_of(const Live& live, SlotState& slot) const {
  if (live.gone) {
    const Gone& gone = *gone_with(live, slot);
    return gone.given.front() == &live ? gone.end.last_lines : std::string();
  }
  const bool is_front = !slot.given.empty() && slot.given.front() == &live;
  return is_front && slot.worker ? slot.worker->last_lines() : std::string();
}

std::vector<Run::Impl::Gone>::iterator Run::Impl::gone_with(const Live& live,
                                                            SlotState& slot) const {
  return std::find_if(slot.gone.begin(), slot.gone.end(), [&](const Gone& gone) {
    return std::find(gone.given.begin(), gone.given.end(), &live) != gone.given.end();
  });
}

// Claims follow how fast a slot's trials are over.
void Run::Impl::learn_pace(SlotState& slot, Clock::time_point now) {
  if (slot.overs == 0) return;
  const double seconds = std::chrono::duration<double>(now - slot.last_over).count() / slot.overs;
  const double weight = slot.mean_seconds ? 1 - std::pow(0.7, slot.overs) : 1;
  slot.mean_seconds = (1 - weight) * slot.mean_seconds.value_or(0) + weight * seconds;
  slot.overs = 0;
  slot.last_over = now;
}

void Run::Impl::conclude_attempt(Live& live, const results::Ending& ending) {
  log_ending(live.directory, ending);
  fault_point("ending_logged");
  to_store_.push_back([attempt = live.attempt, ending](results::Batch& batch) {
    batch.record_ending(attempt, ending);
  });
  concluded_.push_back(live.trial);
  live.over = true;
}

// The worker is gone: what its attempts have written is all that they will. False where there is
// more than one turn reads.
bool Run::Impl::conclude_worker(SlotState& slot, const Gone& gone) {
  const WorkerEnd& end = gone.end;
  const std::deque<Live*> given = gone.given;
  std::vector<Live*> suspects;
  std::vector<Live*> unstarted;
  for (Live* live : given) {
    if (!live->over && !dirty_.contains(live)) read_events(*live);
  }
  const bool all_read = std::none_of(given.begin(), given.end(),
                                     [this](Live* live) { return dirty_.contains(live); });
  if (!all_read) return false;
  for (Live* live : given) {
    if (!live->over) (live->started ? suspects : unstarted).push_back(live);
  }
  results::Ending ending;
  ending.time = wall_clock_seconds();
  const bool taken = std::holds_alternative<TakenAway>(end.how);
  const bool out_of_time = std::holds_alternative<OutOfTime>(end.how);
  const bool refused = std::holds_alternative<Refused>(end.how);
  ending.reason =
      (taken || out_of_time || refused ? "" : "the worker ended with ") + to_string(end);
  if (const Exited* exited = std::get_if<Exited>(&end.how)) ending.exit_code = exited->code;
  if (const Killed* killed = std::get_if<Killed>(&end.how)) ending.signal = killed->signal;
  const bool own_doing =
      gone.asked_to_stop || std::any_of(given.begin(), given.end(), [](const Live* live) {
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
    } else if (gone.asked_to_stop) {
      its.outcome = Outcome::stopped;
      its.reason = "asked to stop";
    } else if (taken || (out_of_time && live->checkpointed)) {
      its.outcome = Outcome::stopped;
    } else if (out_of_time) {
      its.outcome = Outcome::timed_out;
      its.reason += " before a checkpoint";
    } else if (ending.exit_code == 3 && live->checkpointed) {
      its.outcome = Outcome::stopped;
      its.reason = "the worker was stopped by a signal";
    } else if (suspects.size() > 1) {
      its.outcome = Outcome::stopped;
      its.reason += fmt::format(" with {} trials begun: each is tried alone", suspects.size());
      schedule_.set_alone(live->trial, false);
    } else {
      its.outcome = Outcome::crashed;
      if (!end.last_lines.empty()) its.reason += ": " + one_line(end.last_lines);
    }
    conclude_attempt(*live, its);
  }
  const std::string what = "the worker ended with " + to_string(end);
  if (!own_doing && suspects.empty() && !unstarted.empty() && !taken && !out_of_time && !refused) {
    never_begun(*unstarted.front(), what, end.last_lines);
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
    } else if (out_of_time) {
      its.outcome = Outcome::timed_out;
    }
    conclude_attempt(*live, its);
  }
  for (Live* live : given) take_out(*live, slot);
  if (own_doing || gone.any_started || unstarted.empty() || out_of_time) return true;
  if (refused) {
    problem_ = to_string(end);
  } else if (taken) {
    slot.not_before = Clock::now() + backoff(options_.retry_delay, ++slot.taken_away);
  } else {
    launch_failed(slot, what, end.last_lines);
  }
  return true;
}

// A trial that no worker lives to begin would be given out for ever, to one slot after the other
// and between others that can be trained.
void Run::Impl::never_begun(const Live& live, const std::string& what, const std::string& lines) {
  Trial& trial = trials_[live.trial];
  if (++trial.unbegun != kLaunchFailuresThatStop) return;
  const std::string message = fmt::format(
      "{} is left for the next run: three workers in a row ended before they began it: {}{}{}",
      live.attempt.trial_id, what, lines.empty() ? "" : "\n", lines);
  observer_.note(message);
  if (left_.empty()) left_ = message;
}

void Run::Impl::launch_failed(SlotState& slot, const std::string& what, const std::string& lines) {
  ++slot.launch_failures;
  slot.retired = false;  // the slot counts them
  slot.not_before = Clock::now() + backoff(options_.retry_delay, slot.launch_failures);
  ++launch_failures_;
  const bool any_runs = std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
    return entry.second.worker && entry.second.any_started;
  });
  const auto stop_run = [&](const std::string& who) {
    if (any_runs || !problem_.empty()) return;
    problem_ = fmt::format("{} in a row ended before they began a trial: {}{}{}", who, what,
                           lines.empty() ? "" : "\n", lines);
  };
  // A queue's jobs have one cause, wherever they ran.
  if (launcher_.queues()) {
    if (launch_failures_ >= kLaunchFailuresThatStop) stop_run("three jobs");
    return;
  }
  // A slot that is given back between two launches begins to count anew.
  if (launch_failures_ >= kLaunchFailuresThatStop * options_.slots) {
    stop_run(fmt::format("{} workers", launch_failures_));
  }
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

void Run::Impl::settle_over(std::size_t trial, TrialPlan plan) {
  const TrialState state = plan.state;
  const std::string why = plan.why;
  const std::string last_lines = plan.last_lines;
  if (state == TrialState::done) ++finished_here_;
  settle_plan(trial, std::move(plan));
  if (state == TrialState::running) return;  // another petlab has it already
  observer_.trial_over(trials_[trial].what->id.value, state,
                       state == TrialState::done ? std::string() : why, last_lines);
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
  for (Gone& gone : slot.gone) std::erase(gone.given, &live);
  if (was_front) front_changed(slot);
  live_.erase(live.place);
}

void Run::Impl::front_changed(SlotState& slot) {
  report_front(slot);
  if (slot.given.empty() || !slot.worker) return;
  Live& front = *slot.given.front();
  front.began = front.heard = Clock::now();
  slot.worker->log_to(front.directory.log());
}

}  // namespace petlab::orchestrator
