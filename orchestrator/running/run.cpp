// A run has one thread and one loop. Each turn commits all that workers wrote, all ends of workers
// and the next claims in one transaction. Directories are created and workers started only after
// the commit. What short trials do within kGroup shares a transaction, while workers continue with
// earlier claims. Other processes wait for the transaction, so files are read and written before
// it (Outcomes), and it only stores the results (turn.h).
#include "orchestrator/running/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/running/claims.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/early_stops.h"
#include "orchestrator/running/limits.h"
#include "orchestrator/running/neighbours.h"
#include "orchestrator/running/other_runs.h"
#include "orchestrator/running/outcomes.h"
#include "orchestrator/running/queued_jobs.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "orchestrator/running/run_status.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/turn.h"

namespace petlab::orchestrator {
namespace {

using Phase = Course::Phase;

// News is committed no later than this after the previous commit (docs/internals/orchestrator.md).
constexpr std::chrono::milliseconds kGroup{10};
constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kReport = std::chrono::milliseconds(200);

// A note says why nothing runs: the first after kNoteAfter, more every kNoteAgain.
constexpr auto kNoteAfter = std::chrono::seconds(10);
constexpr auto kNoteAgain = std::chrono::minutes(10);

}  // namespace

int exit_code(const RunResult& result) {
  const RunStatus& status = result.status;
  const bool left = status.over() < status.total || result.points_missing;
  if (left && !result.detached) return result.interrupted ? 3 : 1;
  return status.failed > 0 ? 1 : 0;
}

bool is_rerun(const RunOptions& options, const std::string& trial_id, sweeps::TrialState state) {
  const bool asked = options.rerun_all || options.rerun_trials.contains(trial_id);
  switch (state) {
    case sweeps::TrialState::done:
    case sweeps::TrialState::cached:
      return asked;
    case sweeps::TrialState::stale:
      return asked || options.rerun_stale;
    case sweeps::TrialState::failed:
      return asked || options.rerun_failed;
    case sweeps::TrialState::cancelled:
      return options.rerun_trials.contains(trial_id);
    case sweeps::TrialState::stopped:
      return options.resume_stopped || options.rerun_trials.contains(trial_id);
    case sweeps::TrialState::fresh:
    case sweeps::TrialState::running:
    case sweeps::TrialState::interrupted:
      break;
  }
  return false;
}

class Run::Impl {
  struct Times {
    EventLoop::Time committed;
    EventLoop::Time next_tick;
    EventLoop::Time reported;
    /// When to note that no slot is free; absent: not waiting.
    std::optional<EventLoop::Time> note_waiting;
  };

 public:
  Impl(EventLoop& loop, results::Store& store, Launcher& launcher, RunInput input,
       RunObserver& observer)
      : context_(loop, store, launcher, std::move(input), observer), state_(context_) {
    if (SharedDevices* devices = launcher.shared_devices()) {
      shares_.emplace(context_, *devices, state_, guard_);
    }
    if (JobQueue* queue = launcher.queue()) jobs_.emplace(context_, state_, *queue);
  }

  RunResult execute();
  void interrupt();
  void finish();
  void terminate();

 private:
  void start();
  bool finished() const;
  bool handed_out() const;
  void detach();
  void wait_for_work();

  void turn();
  bool has_news() const;
  bool transaction_due(EventLoop::Time now) const;
  void transact(EventLoop::Time now);
  void acquire_slots(EventLoop::Time now);
  void collect_ends();
  void give_to_workers();
  void look_elsewhere();

  void tick(EventLoop::Time now);
  void note_why_nothing_runs(EventLoop::Time now);
  void report(bool now);
  RunStatus status() const;

  void go_to(Phase phase);
  void end_workers_after_error() noexcept;

  RunContext context_;
  RunState state_;
  Neighbours neighbours_{context_, state_, context_.launcher.shared_places()};
  DeviceGuard guard_{context_, state_};
  OtherRuns others_{context_, state_};
  Limits limits_{context_, state_};
  std::optional<Shares> shares_;    // if the launcher has shared devices
  std::optional<QueuedJobs> jobs_;  // if the launcher has a queue
  Outcomes outcomes_{context_, state_, guard_, shares_};
  Claims claims_{context_, state_, guard_, shares_};
  EarlyStops stops_{context_, state_};
  Times times_;
};

Run::Run(EventLoop& loop, results::Store& store, Launcher& launcher, RunInput input,
         RunObserver& observer)
    : impl_(std::make_unique<Impl>(loop, store, launcher, std::move(input), observer)) {}
Run::~Run() = default;
RunResult Run::execute() { return impl_->execute(); }
void Run::interrupt() { impl_->interrupt(); }
void Run::finish() { impl_->finish(); }
void Run::terminate() { impl_->terminate(); }

RunResult Run::Impl::execute() {
  try {
    start();
    while (!finished()) {
      turn();
      report(false);
      if (finished()) break;
      wait_for_work();
    }
  } catch (...) {
    end_workers_after_error();
    throw;
  }
  RunResult result;
  result.detached = !state_.attempts.empty();
  if (result.detached) detach();
  state_.slots.release_all();
  if (jobs_) jobs_->release_orphans();
  report(true);
  result.status = status();
  result.interrupted = state_.course.phase != Phase::running;
  result.problem = state_.course.problem;
  if (result.problem.empty() && state_.trials.any_left()) result.problem = state_.course.left;
  return result;
}

void Run::Impl::start() {
  PlanContext& planning = context_.planning;
  planning.runs = context_.input.options.runs;
  planning.sweep = context_.input.sweep.name;
  planning.retries = context_.input.options.retries;
  planning.numerics = context_.input.options.worker_numerics;
  planning.data_digests =
      known_data_digests(context_.input.sweep.tasks, context_.input.locations.data_folders,
                         context_.input.locations.cache());
  planning.liveness = [this](const results::AttemptFacts& attempt) {
    return liveness(attempt.begun, locks_folder(context_.input.options.runs), context_.here);
  };
  others_.start();
  // Planning very many trials takes a while, so signals are handled between parts.
  const bool planned = state_.trials.plan_all([this] {
    context_.loop.poll();
    return state_.course.claiming();
  });
  if (!planned) return;
  fault_point("planned");
  stops_.judge_interrupted();
  if (jobs_) jobs_->adopt_orphans();
  times_.next_tick = context_.loop.now() + kTick;
}

// True if this run is to be detached, and its jobs have all that they can get.
bool Run::Impl::handed_out() const {
  if (!jobs_ || !context_.input.options.detach || !state_.course.claiming() || has_news() ||
      jobs_->any_strays() || others_.recovery_under_way()) {
    return false;
  }
  const bool settled = !state_.slots.any([](const WorkerSlot& slot) {
    const bool has_trials =
        slot.has_worker() && slot.state() != SlotState::stopping && !slot.given.empty();
    return !slot.ready.empty() || !(has_trials || (slot.health.broken && !slot.has_worker()));
  });
  // Jobs of an earlier run get no more trials, but count as slots.
  const bool all_given = state_.trials.schedule().waiting() == 0;
  const bool full = state_.slots.size() >= context_.input.options.slots &&
                    !claims_.can_claim(context_.loop.now(), true);
  return settled && (all_given || full);
}

// The jobs end after what they have.
void Run::Impl::detach() {
  std::set<std::string> jobs;
  std::size_t trials = 0;
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.given.empty()) continue;
    slot.close(context_.loop.now());
    jobs.insert(slot.worker().launch().job);
    trials += slot.given.size();
  }
  const std::size_t waiting = state_.trials.schedule().waiting();
  context_.observer.note(fmt::format(
      "{} trial(s) are with {} job(s){}; run the same command again to record their results",
      trials, jobs.size(), waiting > 0 ? fmt::format(", {} wait until these end", waiting) : ""));
}

bool Run::Impl::finished() const {
  if (handed_out()) return true;
  if (!state_.attempts.empty() || (jobs_ && jobs_->any_strays())) return false;
  if (state_.slots.any(
          [](const WorkerSlot& slot) { return slot.has_worker() && !slot.is_lost(); })) {
    return false;
  }
  if (!state_.course.claiming()) return true;
  return state_.trials.schedule().waiting() == 0 && state_.trials.elsewhere().empty() &&
         !others_.recovery_under_way();
}

void Run::Impl::wait_for_work() {
  const EventLoop::Time now = context_.loop.now();
  const bool any_end =
      state_.slots.any([](const WorkerSlot& slot) { return slot.state() == SlotState::ended; });
  if (any_end || transaction_due(now) || claims_.prepare_one()) {
    context_.loop.poll();
    return;
  }
  // Wakes up in time for changes that no event reports.
  EventLoop::Time wake = times_.next_tick;
  if (const auto look = others_.next_look()) wake = std::min(wake, *look);
  if (const auto chance = claims_.next_chance(now)) wake = std::min(wake, *chance);
  const bool news = has_news();
  if (news || claims_.can_claim(now, news)) wake = std::min(wake, times_.committed + kGroup);
  context_.loop.wait(wake);
}

void Run::Impl::turn() {
  const EventLoop::Time now = context_.loop.now();
  if (now >= times_.next_tick) tick(now);
  if (jobs_) {
    jobs_->conclude_strays();
  }
  const std::optional<EventLoop::Time> look = others_.next_look();
  if (look && now >= *look) look_elsewhere();
  acquire_slots(now);
  claims_.start_jobs(now);
  collect_ends();
  give_to_workers();
  if (transaction_due(now)) {
    transact(now);
    give_to_workers();
  }
  if (jobs_) jobs_->flush();
  claims_.close_idle_workers();
}

void Run::Impl::acquire_slots(EventLoop::Time now) {
  const auto wanted = [this, now] {
    return state_.course.claiming() ? claims_.gpus_missing(now) : 0;
  };
  neighbours_.announce(wanted());
  if (!state_.course.claiming()) return;
  claims_.acquire_slots(
      [this, &wanted] {
        neighbours_.announce(wanted());
        return neighbours_.may_take_slot();
      },
      neighbours_.alone());
}

// Moves the ends of workers out of their slots. With shared devices, the emptied slots are retired:
// their reservations are what the ended workers needed, and a new worker starts with no memory.
void Run::Impl::collect_ends() {
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.state() != SlotState::ended) continue;
    slot.collect_end(shares_.has_value());
    state_.slots.report_front(slot);
  }
}

void Run::Impl::give_to_workers() {
  for (auto& [name, slot] : state_.slots.all()) {
    if (const auto failure = claims_.give(slot)) outcomes_.launch_failed(slot, *failure, "", "");
  }
}

void Run::Impl::look_elsewhere() {
  const bool cleared_up = others_.clear_up();
  if (jobs_) jobs_->adopt_orphans();
  others_.look(cleared_up);
  stops_.judge_interrupted();
}

bool Run::Impl::has_news() const {
  if (state_.attempts.any_news() || (jobs_ && state_.attempts.any_launched())) return true;
  return state_.slots.any([this](const WorkerSlot& slot) {
    return slot.state() == SlotState::ended || !slot.ended.empty() || outcomes_.any_unstarted(slot);
  });
}

bool Run::Impl::transaction_due(EventLoop::Time now) const {
  const bool news = has_news();
  const bool claims = claims_.can_claim(now, news);
  if (!claims && !news) return false;
  if (!state_.course.claiming() || now - times_.committed >= kGroup) return true;
  return claims && claims_.runs_dry(now);
}

void Run::Impl::transact(EventLoop::Time now) {
  Choice chosen;
  const bool news = has_news();
  if (!news) {
    neighbours_.yield_slots();
    claims_.choose(chosen, now);
    if (chosen.empty()) return claims_.set_fruitless();
  }
  claims_.forget_fruitless();
  const Turn turn = outcomes_.look();
  Changes changes = judge(turn);
  outcomes_.carry_out(changes);
  if (turn.error) std::rethrow_exception(turn.error);
  stops_.judge(turn, changes);
  if (news) {
    neighbours_.yield_slots();
    claims_.choose(chosen, now);
  }
  const std::vector<std::int64_t> at_least = claims_.next_numbers(chosen);
  results::Batch batch = context_.store.begin();
  store(turn, changes, context_.input.options.runs, context_.ingest, batch);
  claims_.claim(chosen, at_least, batch);
  fault_point("before_commit");
  batch.commit();
  fault_point("committed");
  times_.committed = context_.loop.now();
  outcomes_.settle(changes);
  stops_.settle(changes);
}

void Run::Impl::tick(EventLoop::Time now) {
  times_.next_tick = now + kTick;
  context_.store.renew_lease();
  // Reads events even if no watch reported any, for example on a network file system or beyond the
  // kernel's limit of watches.
  for (LiveAttempt& live : state_.attempts.all()) {
    const WorkerSlot& slot = state_.slots.at(live.slot);
    if (live.is_with_worker() && slot.has_worker() && !slot.waits())
      state_.attempts.mark_news(live);
  }
  limits_.check();
  // A queue ends its jobs itself, even if it takes long.
  if (!jobs_) {
    for (auto& [name, slot] : state_.slots.all()) {
      if (slot.outlives_kill(now)) outcomes_.give_up(slot);
    }
  }
  if (shares_) shares_->retry_reservations();
  claims_.forget_fruitless();
  note_why_nothing_runs(now);
  if (state_.course.phase == Phase::running || state_.course.phase == Phase::finishing) {
    others_.look_at_decisions();
  }
  report(false);
}

void Run::Impl::note_why_nothing_runs(EventLoop::Time now) {
  const bool nothing_runs = jobs_ ? state_.attempts.empty() : state_.slots.empty();
  const bool waits = state_.course.phase == Phase::running && nothing_runs &&
                     state_.trials.schedule().waiting() > 0;
  if (!waits || !times_.note_waiting) {
    times_.note_waiting = waits ? std::optional(now + kNoteAfter) : std::nullopt;
    return;
  }
  if (now < *times_.note_waiting) return;
  times_.note_waiting = now + kNoteAgain;
  std::string why = neighbours_.why_no_slot();
  if (why.empty()) why = context_.launcher.why_no_slot();
  context_.observer.note("waiting for a slot" + (why.empty() ? std::string() : ": " + why));
}

void Run::Impl::interrupt() {
  // Counted separately from finish(), so that a `petlab stop` at the same moment does not escalate
  // it.
  go_to(static_cast<Phase>(std::min(++state_.course.interrupts, static_cast<int>(Phase::killing))));
}

void Run::Impl::finish() {
  if (state_.course.phase == Phase::running) go_to(Phase::finishing);
}

void Run::Impl::terminate() {
  state_.course.interrupts = std::max(state_.course.interrupts, 2);
  if (state_.course.phase < Phase::stopping) go_to(Phase::stopping);
}

void Run::Impl::go_to(Phase phase) {
  state_.course.phase = std::max(state_.course.phase, phase);
  for (auto& [name, slot] : state_.slots.all()) {
    if (state_.course.phase == Phase::stopping) slot.ask_to_stop(context_.loop.now());
    if (state_.course.phase == Phase::killing) slot.kill(context_.loop.now());
  }
  if (state_.course.phase == Phase::finishing) {
    context_.observer.note(
        "finishing the running trials; Ctrl-C again: checkpoint and stop; a third time: kill");
  } else if (state_.course.phase == Phase::stopping) {
    context_.observer.note("stopping at a checkpoint; Ctrl-C again: kill");
  }
}

void Run::Impl::end_workers_after_error() noexcept {
  try {
    if (jobs_) {
      // The jobs continue to write to their files; the next run adopts them.
      if (state_.slots.any([](const WorkerSlot& slot) { return slot.has_worker(); })) {
        context_.observer.note("submitted jobs keep running; run the same command to adopt them");
      }
      state_.slots.clear();
      jobs_->abandon();
      return;
    }
    const auto any_alive = [this] {
      return state_.slots.any([](const WorkerSlot& slot) { return slot.has_live_worker(); });
    };
    const EventLoop::Time deadline = context_.loop.now() + context_.input.options.grace;
    for (auto& [name, slot] : state_.slots.all()) slot.ask_to_stop(context_.loop.now());
    while (any_alive() && context_.loop.now() < deadline) context_.loop.wait(deadline);
  } catch (...) {
    // The workers' destructors kill what is left.
  }
  state_.slots.clear();
}

RunStatus Run::Impl::status() const {
  return status_of(context_, state_, outcomes_.finished_here());
}

void Run::Impl::report(bool now) {
  const EventLoop::Time time = context_.loop.now();
  if (!now && time - times_.reported < kReport) return;
  times_.reported = time;
  context_.observer.status(status());
}

}  // namespace petlab::orchestrator
