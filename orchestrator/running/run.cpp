#include "orchestrator/running/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "base/sha256.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/attempt_log.h"
#include "orchestrator/recovery/recovery.h"
#include "orchestrator/running/run_impl.h"
#include "sweeps/identity.h"

namespace petlab::orchestrator {

using results::Outcome;
using sweeps::TrialState;

namespace {

constexpr auto kTick = std::chrono::seconds(1);
// How often a run that waits for another orchestrator looks again. Only then: a lock that becomes
// free tells nobody.
constexpr auto kLookElsewhere = std::chrono::milliseconds(200);
// While workers of a dead one are to end, which most do at once.
constexpr auto kLookAtDying = std::chrono::milliseconds(20);
constexpr auto kPlanElsewhere = std::chrono::seconds(10);

// A user who sees nothing running is told why.
constexpr auto kTellAfter = std::chrono::seconds(10);
constexpr auto kTellAgain = std::chrono::minutes(10);
// So is one whose trial has said nothing for so long; after its last step the end is near.
constexpr auto kSilent = std::chrono::minutes(10);
constexpr auto kSilentAtEnd = std::chrono::seconds(30);

std::int64_t bytes_in(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

int exit_code(const RunResult& result) {
  const RunStatus& status = result.status;
  const std::int64_t settled = status.done + status.failed + status.cancelled;
  if (settled < status.total) return result.interrupted ? 3 : 1;
  return status.failed > 0 ? 1 : 0;
}

Run::Run(boost::asio::io_context& loop, results::Store& store, Launcher& launcher,
         const sweeps::Sweep& sweep, const sweeps::Locations& locations, RunOptions options,
         RunObserver& observer)
    : impl_(std::make_unique<Impl>(loop, store, launcher, sweep, locations, std::move(options),
                                   observer)) {}
Run::~Run() = default;
RunResult Run::execute() { return impl_->execute(); }
void Run::interrupt() { impl_->interrupt(1); }
void Run::finish() { impl_->finish(); }
void Run::terminate() { impl_->interrupt(2); }

Run::Impl::Impl(boost::asio::io_context& loop, results::Store& store, Launcher& launcher,
                const sweeps::Sweep& sweep, const sweeps::Locations& locations, RunOptions options,
                RunObserver& observer)
    : loop_(loop),
      store_(store),
      launcher_(launcher),
      sweep_(sweep),
      locations_(locations),
      options_(std::move(options)),
      observer_(observer),
      ingest_(store, options_.runs),
      recovery_(store, ingest_, options_.runs, options_.grace),
      watch_(loop,
             [this](int watch) {
               const auto found = by_watch_.find(watch);
               if (found != by_watch_.end()) dirty_.insert(found->second);
             }),
      tick_timer_(loop),
      retry_timer_(loop),
      here_(this_host()) {}

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
  tick_timer_.cancel();
  for (auto& [name, slot] : slots_) launcher_.release_slot(name);
  slots_.clear();
  release_orphans();
  report(true);
  RunResult result;
  result.status = status();
  result.interrupted = phase_ != Phase::running;
  result.problem = problem_.empty() ? left_ : problem_;
  return result;
}

void Run::Impl::interrupt(int at_least) {
  // Counted apart from finish(), so that `petlab stop` at the same moment makes it no harder.
  interrupts_ = std::max(interrupts_ + 1, at_least);
  go_to(static_cast<Phase>(std::min(interrupts_, static_cast<int>(Phase::killing))));
}

void Run::Impl::go_to(Phase phase) {
  phase_ = std::max(phase_, phase);
  for (auto& [name, slot] : slots_) {
    if (!slot.worker || slot.end) continue;
    if (phase_ == Phase::stopping && !slot.asked_to_stop) {
      slot.asked_to_stop = true;
      slot.asked_at = Clock::now();
      slot.worker->stop();
      // One that waits for its next line may miss the signal, but not the end of its input.
      slot.worker->close();
    }
    if (phase_ == Phase::killing) {
      slot.asked_to_stop = true;
      slot.worker->kill();
    }
  }
  if (phase_ == Phase::finishing) {
    observer_.note("finishing the running trials; again: checkpoint and stop; a third time: kill");
  } else if (phase_ == Phase::stopping) {
    observer_.note("stopping at a checkpoint; again: kill");
  }
}

void Run::Impl::finish() {
  if (phase_ == Phase::running) go_to(Phase::finishing);
}

void Run::Impl::start() {
  data_digests_ = known_data_digests(sweep_.tasks, locations_.data_folders, locations_.cache());
  clear_up();
  trials_.resize(sweep_.trials.size());
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    trials_[trial].what = &sweep_.trials[trial];
    by_id_[sweep_.trials[trial].id.value] = trial;
  }
  decisions_version_ = store_.read().data_version();
  plan_all();
  fault_point("planned");
  if (launcher_.queues()) {
    launcher_.on_launch([this](const std::string& slot) { launches_.insert(slot); });
    adopt_orphans();
  }
  tick();
}

PlanContext Run::Impl::context() const {
  PlanContext context;
  context.runs = options_.runs;
  context.sweep = sweep_.name;
  context.retries = options_.retries;
  context.numerics = options_.worker_numerics;
  context.data_digests = data_digests_;
  context.liveness = [this](const results::AttemptFacts& attempt) {
    return liveness(attempt.begun, locks_folder(options_.runs), here_);
  };
  return context;
}

std::vector<results::TrialFacts> Run::Impl::facts_of(const std::vector<std::size_t>& trials) const {
  std::vector<std::string> ids;
  ids.reserve(trials.size());
  for (const std::size_t trial : trials) ids.push_back(trials_[trial].what->id.value);
  return store_.read().trial_facts(ids);
}

void Run::Impl::plan_all() {
  number_shapes();
  const PlanContext how = context();
  std::vector<TrialPlan> plans;
  plans.reserve(trials_.size());
  std::vector<std::pair<double, int>> seconds(shape_memory_mib_.size());  // by shape: sum, count
  // Facts are many times larger than what is kept of them.
  for (std::size_t begin = 0; begin < trials_.size(); begin += kPlannedAtOnce) {
    std::vector<std::size_t> part(std::min(kPlannedAtOnce, trials_.size() - begin));
    std::iota(part.begin(), part.end(), begin);
    std::vector<results::TrialFacts> facts = facts_of(part);
    fault_point("facts_read");
    std::vector<TrialPlan> planned = plans_of(part, facts, how);
    if (bring_up_to_date(part, facts, planned)) {
      facts = facts_of(part);
      planned = plans_of(part, facts, how);
    }
    for (const std::size_t trial : part) {
      const results::TrialFacts& known = facts[trial - begin];
      note_facts(trial, known, seconds[shapes_[trial]]);
      trials_[trial].cancelled = known.cancelled;
      if (known.cancelled) cancelled_.insert(trial);
      trials_[trial].retried_after = known.retried_after;
      plans.push_back(std::move(planned[trial - begin]));
    }
  }
  const auto files_gone = std::count_if(plans.begin(), plans.end(),
                                        [](const TrialPlan& plan) { return plan.files_gone; });
  if (files_gone > 0) {
    observer_.note(fmt::format(
        "the files of {} finished trial(s) are gone from {}: their scores are in the database, "
        "their artifacts and logs are lost; with another --db they are trained again",
        files_gone, options_.runs.string()));
  }
  std::vector<Task> tasks(trials_.size());
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    tasks[trial].group = trials_[trial].what->config.backbone;
    tasks[trial].priority = trials_[trial].what->priority;
    const auto& [sum, count] = seconds[shapes_[trial]];
    if (count > 0) tasks[trial].expected_seconds = sum / count;
  }
  schedule_ = Schedule(std::move(tasks));
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    settle_plan(trial, std::move(plans[trial]));
  }
}

std::vector<TrialPlan> Run::Impl::plans_of(const std::vector<std::size_t>& trials,
                                           const std::vector<results::TrialFacts>& facts,
                                           const PlanContext& how) const {
  std::vector<TrialPlan> plans;
  plans.reserve(trials.size());
  for (std::size_t at = 0; at < trials.size(); ++at) {
    plans.push_back(plan_trial(trials_[trials[at]].what->config, facts[at], how));
  }
  return plans;
}

// What the user asked to be tried again, and results that came after their attempts were given up:
// they count. True where the facts have changed.
bool Run::Impl::bring_up_to_date(const std::vector<std::size_t>& trials,
                                 const std::vector<results::TrialFacts>& facts,
                                 const std::vector<TrialPlan>& plans) {
  bool changed = false;
  for (std::size_t at = 0; at < trials.size(); ++at) {
    const results::TrialFacts& known = facts[at];
    const TrialPlan& plan = plans[at];
    const bool rerun = (plan.state == TrialState::stale && options_.rerun_stale) ||
                       (plan.state == TrialState::failed && options_.rerun_failed);
    if (rerun) {
      decide(store_, options_.runs, known.trial_id,
             {Decision::What::retry, plan.latest, wall_clock_seconds()});
      changed = true;
    } else if (plan.state == TrialState::interrupted || plan.state == TrialState::failed) {
      for (const results::AttemptFacts& attempt : known.attempts) {
        const protocol::TrialDirectory directory(options_.runs, known.trial_id,
                                                 attempt.attempt.number);
        if (bytes_in(directory.events()) <= store_.read().cursor(attempt.attempt).offset) continue;
        ingest_.read_all(attempt.attempt);
        ingest_.forget(attempt.attempt);
        changed = true;
      }
    }
  }
  return changed;
}

// Trials that differ in the seed alone take about equally long, and as much memory.
void Run::Impl::number_shapes() {
  std::unordered_map<std::string, std::size_t> numbers;  // by digest: the texts are long
  shapes_.clear();
  shapes_.reserve(trials_.size());
  sweeps::TrialConfig last;
  for (const Trial& trial : trials_) {
    sweeps::TrialConfig config = trial.what->config;
    config.seed = {};
    // Mostly the seeds of one configuration stand together.
    if (!shapes_.empty() && config == last) {
      shapes_.push_back(shapes_.back());
      continue;
    }
    const std::string digest = base::sha256(sweeps::to_json(config).dump());
    shapes_.push_back(numbers.emplace(digest, numbers.size()).first->second);
    last = std::move(config);
  }
  shape_memory_mib_.assign(numbers.size(), 0);
}

void Run::Impl::note_facts(std::size_t trial, const results::TrialFacts& facts,
                           std::pair<double, int>& seconds) {
  for (const results::AttemptFacts& attempt : facts.attempts) {
    // One that did not finish may have needed more in the end.
    if (attempt.outcome != Outcome::finished) continue;
    if (attempt.device_memory_mib) {
      std::int64_t& memory = shape_memory_mib_[shapes_[trial]];
      memory = std::max(memory, static_cast<std::int64_t>(std::ceil(*attempt.device_memory_mib)));
    }
    if (!attempt.started_at || !attempt.ended_at || attempt.begun.resume) continue;
    seconds.first += *attempt.ended_at - *attempt.started_at;
    ++seconds.second;
  }
}

void Run::Impl::settle_plan(std::size_t trial, TrialPlan plan) {
  Trial& entry = trials_[trial];
  elsewhere_.erase(trial);
  if (is_work(plan.state)) {
    if (plan.ran_out_of_memory) schedule_.set_alone(trial, true);
    const std::int64_t failures = std::max<std::int64_t>(plan.failures, entry.unbegun);
    if (entry.unbegun >= kLaunchFailuresThatStop) {
      entry.standing = Standing::left;
    } else {
      entry.standing = Standing::waiting;
      schedule_.add(trial, failures > 0 ? Clock::now() + backoff(options_.retry_delay, failures)
                                        : Clock::time_point());
    }
    fruitless_ = false;
  } else if (plan.state == TrialState::running) {
    entry.standing = Standing::elsewhere;
    elsewhere_.insert(trial);
  } else {
    entry.standing = Standing::settled;
    ++state_counts_[static_cast<std::size_t>(plan.state)];
  }
  entry.plan = std::move(plan);
}

// The attempts of dead orchestrators that are over now.
std::int64_t Run::Impl::clear_up() {
  const Recovered recovered = recovery_.step(Clock::now(), wall_clock_seconds());
  if (recovered.attempts > 0) {
    observer_.note(fmt::format("cleared up after {} orchestrator(s) that had died: {} attempt(s)",
                               recovered.owners, recovered.attempts));
  }
  return recovered.attempts;
}

Run::Impl::Clock::time_point Run::Impl::next_look_elsewhere() const {
  if (recovery_.under_way()) return looked_elsewhere_ + kLookAtDying;
  const bool waits = claiming() && !elsewhere_.empty();
  return waits ? looked_elsewhere_ + kLookElsewhere : Clock::time_point::max();
}

void Run::Impl::look_elsewhere() {
  looked_elsewhere_ = Clock::now();
  // Nothing was written by others: then only a death can have changed anything.
  const std::int64_t cleared_up = clear_up();
  if (launcher_.queues()) adopt_orphans();
  const std::int64_t version = store_.read().data_version();
  // What Slurm's petlabs leave behind when they die is seen in their locks alone.
  const bool due = looked_elsewhere_ - planned_elsewhere_ >= kPlanElsewhere;
  if (version != seen_version_ || cleared_up > 0 || due) {
    seen_version_ = version;
    planned_elsewhere_ = looked_elsewhere_;
    unknown_elsewhere_ = 0;
    bool any_in_queue = false;
    const std::vector<std::size_t> trials(elsewhere_.begin(), elsewhere_.end());
    const std::vector<results::TrialFacts> facts = facts_of(trials);
    fault_point("facts_read");
    const PlanContext how = context();
    for (std::size_t at = 0; at < trials.size(); ++at) {
      TrialPlan plan = plan_trial(trials_[trials[at]].what->config, facts[at], how);
      if (plan.state != TrialState::running) {
        settle_plan(trials[at], std::move(plan));
      } else if (how.liveness(facts[at].attempts.back()) == Liveness::unknown) {
        ++unknown_elsewhere_;
        any_in_queue = any_in_queue || in_queue(facts[at].attempts.back().begun);
      }
    }
    unknown_hint_ = any_in_queue && !launcher_.queues()
                        ? "run as jobs of Slurm; `petlab run --launcher slurm` goes on with them"
                        : "run on another host, as far as is known from here; where that is over, "
                          "`petlab retry --declare-dead` says so";
  }
  if (unknown_elsewhere_ > 0 && unknown_elsewhere_ == elsewhere_.size() &&
      schedule_.waiting() == 0 && live_.empty()) {
    problem_ = fmt::format("{} trial(s) {}", unknown_elsewhere_, unknown_hint_);
  }
}

// What `petlab cancel` and `petlab retry` have stored since.
void Run::Impl::look_at_decisions() {
  const std::int64_t version = store_.read().data_version();
  if (version == decisions_version_) return;
  decisions_version_ = version;
  std::set<std::size_t> cancelled;
  for (const results::Decided& decision : store_.read().decided()) {
    const auto found = by_id_.find(decision.trial_id);
    if (found == by_id_.end()) continue;
    if (decision.cancelled) cancelled.insert(found->second);
    decided(found->second, decision.cancelled, decision.retried_after);
  }
  for (const std::size_t trial : std::set<std::size_t>(cancelled_)) {
    if (!cancelled.contains(trial)) decided(trial, false, trials_[trial].retried_after);
  }
  cancelled_ = std::move(cancelled);
}

void Run::Impl::decided(std::size_t trial, bool cancelled, std::int64_t retried_after) {
  Trial& entry = trials_[trial];
  if (entry.cancelled == cancelled && entry.retried_after == retried_after) return;
  entry.cancelled = cancelled;
  entry.retried_after = retried_after;
  entry.unbegun = 0;
  const std::string& id = entry.what->id.value;
  if (entry.standing == Standing::elsewhere) return;  // planned with the others
  if (entry.standing == Standing::taken) {
    if (cancelled) cancel_taken(trial);
    return;
  }
  if (entry.standing == Standing::waiting) schedule_.remove(trial);
  if (entry.standing == Standing::settled) {
    --state_counts_[static_cast<std::size_t>(entry.plan.state)];
  }
  const TrialState before = entry.plan.state;
  settle_plan(trial, plan_trial(entry.what->config, facts_of({trial}).front(), context()));
  if (entry.plan.state == before) return;
  if (entry.standing == Standing::waiting) {
    observer_.note(fmt::format("{} waits again: {}", id, entry.plan.why));
  } else {
    observer_.trial_over(id, entry.plan.state, entry.plan.why, "");
  }
}

// Of a worker that has several trials the whole is stopped: the others go on from their
// checkpoints.
void Run::Impl::cancel_taken(std::size_t trial) {
  for (Live& live : live_) {
    if (live.trial != trial || live.over) continue;
    live.verdict = Verdict::cancelled;
    SlotState& slot = slots_.at(live.slot);
    if (!live.launched || !slot.worker || slot.end || slot.asked_to_stop) continue;
    slot.asked_to_stop = true;
    slot.asked_at = Clock::now();
    slot.worker->stop();
    slot.worker->close();
  }
}

void Run::Impl::tick() {
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    // Also where no watch told anything: a limit of the kernel, a network file system.
    for (Live& live : live_) {
      const SlotState& slot = slots_.at(live.slot);
      if (live.launched && slot.worker && !slot.worker->waits()) dirty_.insert(&live);
    }
    check_limits();
    for (auto& [name, slot] : slots_) {
      if (slot.to_reserve) resize_share(slot, *slot.to_reserve);
    }
    fruitless_ = false;
    tell_why_nothing_runs();
    if (phase_ == Phase::running || phase_ == Phase::finishing) look_at_decisions();
    report(false);
    tick();
  });
}

void Run::Impl::tell_why_nothing_runs() {
  const Clock::time_point now = Clock::now();
  const bool waits = phase_ == Phase::running && slots_.empty() && schedule_.waiting() > 0;
  if (!waits || !waits_since_) {
    waits_since_ = waits ? std::optional(now + kTellAfter) : std::nullopt;
    return;
  }
  if (now < *waits_since_) return;
  waits_since_ = now + kTellAgain;
  const std::string why = launcher_.why_no_slot();
  observer_.note("waits for a slot" + (why.empty() ? std::string() : ": " + why));
}

void Run::Impl::check_limits() {
  const Clock::time_point now = Clock::now();
  const Clock::duration passed = now - std::exchange(checked_limits_, now);
  for (auto& [name, slot] : slots_) {
    if (!slot.worker || slot.end) continue;
    if (slot.worker->waits() && !slot.given.empty()) {
      slot.given.front()->began += passed;
      slot.given.front()->heard += passed;
    }
    if (slot.asked_to_stop || (slot.closing && slot.given.empty())) {
      if (now - slot.asked_at > options_.grace) slot.worker->kill();
      continue;
    }
    if (slot.given.empty()) continue;
    Live& front = *slot.given.front();
    if (options_.time_limit && now - front.began > *options_.time_limit) {
      front.verdict = Verdict::timed_out;
      slot.asked_to_stop = true;
      slot.asked_at = now;
      slot.worker->stop();
    } else if (options_.no_progress_limit &&
               now - std::max(front.heard, front.began) > *options_.no_progress_limit) {
      front.verdict = Verdict::stalled;
      slot.worker->kill();
    } else if (!slot.worker->waits()) {
      tell_of_silence(front, now);
    }
  }
}

// Most who write a first worker forget an event; a run without --no-progress-limit waits for it.
void Run::Impl::tell_of_silence(Live& front, Clock::time_point now) {
  const bool all_steps = front.progress && front.progress->step >= front.progress->of;
  const auto silent = now - std::max(front.heard, front.began);
  if (front.told_silent || silent < (all_steps ? Clock::duration(kSilentAtEnd) : kSilent)) return;
  front.told_silent = true;
  observer_.note(fmt::format(
      "{}: its worker has reported nothing for {} s{}; a trial is over when it writes finished or "
      "failed (docs/worker.md), and --no-progress-limit ends a worker that is silent",
      front.attempt.trial_id, std::chrono::duration_cast<std::chrono::seconds>(silent).count(),
      all_steps ? " since its last step" : ""));
}

bool Run::Impl::finished() const {
  if (!live_.empty() || !strays_.empty()) return false;
  for (const auto& [name, slot] : slots_) {
    if (slot.worker) return false;
  }
  if (phase_ != Phase::running || !problem_.empty()) return true;
  return schedule_.waiting() == 0 && elsewhere_.empty() && !recovery_.under_way();
}

void Run::Impl::wait_for_work() {
  const Clock::time_point now = Clock::now();
  const bool any_end = std::any_of(slots_.begin(), slots_.end(),
                                   [](const auto& entry) { return entry.second.end.has_value(); });
  if (any_end || transaction_due(now) || prepare_one()) {
    loop_.poll();
    return;
  }
  // Timers only for what tells nobody when it happens.
  std::optional<Clock::time_point> wake;
  const auto earliest = [&wake](Clock::time_point time) {
    if (!wake || time < *wake) wake = time;
  };
  if (next_look_elsewhere() != Clock::time_point::max()) earliest(next_look_elsewhere());
  if (phase_ == Phase::running && problem_.empty()) {
    if (schedule_.waiting() > 0) {
      const Clock::time_point ready = *schedule_.next_ready();
      if (ready > now) earliest(ready);
      if (slots_missing(now) > 0) earliest(looked_for_slots_ + kLookElsewhere);
      for (const auto& [name, slot] : slots_) {
        if (slot.not_before > now) earliest(slot.not_before);
      }
    }
  }
  if (has_news() || can_claim(now)) earliest(committed_ + kGroup);
  if (wake && (!armed_ || *wake < *armed_)) {
    armed_ = *wake;
    retry_timer_.expires_at(*wake);
    retry_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) armed_.reset();
    });
  }
  loop_.run_one();
  loop_.poll();
  if (loop_.stopped()) loop_.restart();
}

void Run::Impl::end_workers_after_error() noexcept {
  try {
    if (launcher_.queues()) {
      // Their files hold what comes; the next run adopts them.
      const bool any = std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
        return entry.second.worker != nullptr;
      });
      if (any) observer_.note("jobs that were handed in go on; the same command adopts them");
      slots_.clear();
      strays_.clear();
      return;
    }
    const auto any_alive = [this] {
      return std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
        return entry.second.worker && !entry.second.end;
      });
    };
    for (auto& [name, slot] : slots_) {
      if (slot.worker && !slot.end) slot.worker->stop();
    }
    const Clock::time_point deadline = Clock::now() + options_.grace;
    while (any_alive() && Clock::now() < deadline) {
      loop_.restart();
      loop_.run_one_until(deadline);
    }
  } catch (...) {
    // The workers' destructors kill what is left.
  }
  slots_.clear();
}

RunStatus Run::Impl::status() const {
  const auto count = [this](TrialState state) {
    return state_counts_[static_cast<std::size_t>(state)];
  };
  RunStatus status;
  status.total = static_cast<std::int64_t>(trials_.size());
  status.cached = count(TrialState::cached);
  status.stale = count(TrialState::stale);
  status.done = count(TrialState::done) + status.cached + status.stale;
  status.failed = count(TrialState::failed);
  status.cancelled = count(TrialState::cancelled);
  status.elsewhere = static_cast<std::int64_t>(elsewhere_.size());
  status.finished_here = finished_here_;
  for (const auto& [name, slot] : slots_) {
    if (slot.given.empty()) continue;
    // A queue may hold a thousand: they are counted, with those that wait.
    if (slot.worker && slot.worker->waits() && !slot.any_started) continue;
    RunningTrial running = running_trial(*slot.given.front());
    if (slot.worker && slot.worker->suspended()) running.doing = "suspended";
    if (slot.asked_to_stop) running.doing = "stopping";
    status.trials.push_back(std::move(running));
  }
  status.running = static_cast<std::int64_t>(status.trials.size());
  status.waiting = status.total - status.done - status.failed - status.cancelled -
                   status.elsewhere - status.running;
  return status;
}

BestMetric Run::Impl::metric_of(std::size_t trial) const {
  std::vector<const sweeps::TaskDeclaration*> tasks;
  for (const std::string& task : trials_[trial].what->config.tasks) {
    tasks.push_back(&sweep_.tasks.at(task));
  }
  return BestMetric(tasks);
}

RunningTrial Run::Impl::running_trial(const Live& live) const {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  const Clock::time_point now = Clock::now();
  RunningTrial running;
  running.trial_id = live.attempt.trial_id;
  running.attempt = live.attempt.number;
  for (const std::string& variant : trials_[live.trial].what->variants) {
    running.variant += (running.variant.empty() ? "" : ", ") + variant;
  }
  running.sweep = sweep_.name;
  running.slot = live.slot;
  running.host = live.launch.host;
  if (running.host.empty() && !launcher_.queues()) running.host = here_.host;
  running.doing = !live.started ? "starting" : !live.progress ? "loading" : "training";
  running.best = live.best.value();
  if (live.device_memory_mib > 0) running.device_memory_mib = live.device_memory_mib;
  running.seconds = seconds(now - live.began);
  const std::optional<double> expected = schedule_.task(live.trial).expected_seconds;
  if (!live.progress) {
    running.seconds_left = seconds_left(0, 0, 0, running.seconds, expected);
    return running;
  }
  running.step = live.progress->step;
  running.of = live.progress->of;
  running.loss = live.progress->loss;
  running.seconds_left = seconds_left(running.step, running.of, live.first_step,
                                      seconds(live.progress_at - live.started_at), expected);
  if (running.seconds_left) {
    *running.seconds_left = std::max(0.0, *running.seconds_left - seconds(now - live.progress_at));
  }
  return running;
}

void Run::Impl::report(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time - reported_ < std::chrono::milliseconds(200)) return;
  reported_ = time;
  observer_.status(status());
}

}  // namespace petlab::orchestrator
