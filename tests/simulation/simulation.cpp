#include "tests/simulation/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "orchestrator/records/decide.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/recovery/evidence.h"
#include "results/store.h"
#include "tests/simulation/simulated_orchestrator.h"
#include "tests/simulation/simulated_workers.h"
#include "tests/simulation/simulated_world.h"
#include "tests/support/scripted_values.h"

namespace petlab::testing {
namespace {

namespace fs = std::filesystem;
using results::Outcome;

// Nothing takes longer than this, nor more orchestrators, once fate rests.
constexpr auto kBound = std::chrono::hours(1);
constexpr std::size_t kMostStarts = 20;

std::vector<std::vector<results::Value>> rows_of(const fs::path& database,
                                                 const std::set<std::string>& without) {
  results::QueryResult all = results::query(
      database,
      "SELECT trial_id, step, split, task, name, value FROM results ORDER BY 1, 2, 3, 4, 5, 6");
  std::erase_if(all.rows, [&](const auto& row) {
    return without.contains(std::get<std::string>(row.front()));
  });
  return all.rows;
}

class Simulation {
 public:
  Simulation(const Plan& plan, const SimulatedSweeps& sweeps, const fs::path& folder,
             bool disturbed)
      : sweeps_(sweeps),
        world_(plan.seed),
        workers_(world_),
        folder_{folder / "sweep.db", folder / "sweep.runs", folder / "slots"} {
    for (const std::string& kind : disturbances()) {
      // Each seed leaves some kinds out.
      const bool is_out = !disturbed || world_.chance(0.25) || plan.without.contains(kind);
      if (!is_out) kinds_.insert(kind);
    }
    const std::size_t trials = 1 + world_.below(kMostTrials);
    const std::size_t orchestrators = 2 + world_.below(kMostOrchestrators - 1);
    sweep_ = &sweeps.of(plan.trials > 0 ? plan.trials
                        : disturbed     ? trials
                                        : kMostTrials,
                        is("stops"));
    most_alive_ = plan.orchestrators > 0 ? plan.orchestrators : disturbed ? orchestrators : 1;
    spaces_ = world_.chance(0.2) ? 2 : 1;
    // Without a draw, so that a seed's other fates stay. These workers train a gang one by one.
    most_in_gang_ = disturbed && plan.seed % 4 == 0 ? 3 : 1;
    workers_stop_trials_ = plan.seed % 3 != 0;
    retries_ = 1'000'000;
    grace_ = World::Milliseconds(2000 + world_.below(4000));
    silence_ = World::Milliseconds(4000 + world_.below(10'000));
    const bool one_fails = world_.chance(0.2);
    for (const sweeps::SweepTrial& trial : sweep_->trials) ids_.push_back(trial.id.value);
    if (disturbed && one_fails) failing_.insert(ids_[world_.below(ids_.size())]);
    workers_.fails = [this](const std::string& trial) { return failing_.contains(trial); };
    fs::create_directories(folder_.runs);
    fs::create_directories(folder_.slots);
    fs::copy_file(sweeps.empty(), folder_.database);
    user_.emplace(folder_.database);
  }
  // Fibers that still wait must unwind as if they were killed.
  ~Simulation() {
    for (const auto& orchestrator : orchestrators_) orchestrator->kill(true);
  }

  // Empty, or what is wrong.
  std::string run(Tally& tally) {
    disturb();
    rest();
    complete();
    world_.count("seeds");
    tally.add({(world_.seconds() - 1000) / 3600, world_.counts()});
    return world_.found();
  }
  const World& world() const { return world_; }
  const fs::path& database() const { return folder_.database; }

 private:
  bool is(const std::string& kind) const { return kinds_.contains(kind); }

  void start_one() {
    SimulatedOrchestrator::Options options;
    options.space = fmt::format("pid:[{}]", 1 + world_.below(spaces_));
    options.slots = static_cast<int>(1 + world_.below(3));
    options.workers_stay = world_.chance(0.7);
    options.run.retries = retries_;
    options.run.retry_delay = World::Milliseconds(1 + world_.below(2000));
    options.run.grace = grace_;
    options.run.no_progress_limit = silence_;
    options.run.worker_numerics = "1";
    options.run.most_in_gang = most_in_gang_;
    options.run.workers_stop_trials = workers_stop_trials_;
    // Every trial that a rule stopped is continued in the end, so the results are the same.
    options.run.resume_stopped = !is_striking_ || world_.chance(0.1);
    options.run.rerun_all = is_striking_ && is("user") && world_.chance(0.1);
    orchestrators_.push_back(std::make_unique<SimulatedOrchestrator>(
        workers_, folder_, *sweep_, sweeps_.locations(), std::move(options), disturbance_));
    orchestrators_.back()->begin();
  }

  std::vector<SimulatedOrchestrator*> alive() const {
    std::vector<SimulatedOrchestrator*> found;
    for (const auto& orchestrator : orchestrators_) {
      if (orchestrator->is_alive()) found.push_back(orchestrator.get());
    }
    return found;
  }

  void disturb() {
    if (kinds_.empty()) return;
    if (is("death")) disturbance_.death = 0.004 * static_cast<double>(1 + world_.below(10));
    if (is("disk")) disturbance_.error = 0.002 * static_cast<double>(1 + world_.below(10));
    if (is("pause")) disturbance_.pause = 0.02 * static_cast<double>(1 + world_.below(10));
    if (is("workers")) {
      for (double* rate :
           {&workers_.faults.crash, &workers_.faults.leave, &workers_.faults.hang,
            &workers_.faults.deaf, &workers_.faults.undying, &workers_.faults.end_crashes}) {
        *rate = world_.chance(0.5) ? 0.3 * static_cast<double>(world_.below(100)) / 100 : 0;
      }
    }
    const World::Time until = world_.now() + std::chrono::seconds(4 + world_.below(20));
    const World::Milliseconds rhythm(500 + world_.below(4500));
    strike_again(until, rhythm);
    while (world_.found().empty() && (world_.now() < until || is_striking_)) step();
  }

  void strike_again(World::Time until, World::Milliseconds rhythm) {
    is_striking_ = world_.now() < until;
    if (!is_striking_) return;
    strike();
    world_.in(world_.up_to(rhythm), [this, until, rhythm] { strike_again(until, rhythm); });
  }

  void strike() {
    std::vector<SimulatedOrchestrator*> living = alive();
    if (living.size() < most_alive_ && world_.chance(living.empty() ? 0.9 : 0.5)) {
      return start_one();
    }
    if (is("power") && world_.chance(0.02)) return cut_power();
    if (is("user") && world_.chance(0.3)) return decide();
    if (is("workers") && world_.chance(0.2)) return strike_worker();
    if (living.empty()) return;
    SimulatedOrchestrator& one = *living[world_.below(living.size())];
    if (is("death") && world_.chance(0.3)) return one.kill(spaces_ == 1 && world_.chance(0.3));
    if (is("pause") && world_.chance(0.4)) {
      return one.suspend(world_.up_to(World::Milliseconds(10'000)));
    }
    if (!is("signals") || !world_.chance(0.2)) return;
    if (world_.chance(0.5)) {
      one.terminate();  // once to the process and once to its group
      return one.terminate();
    }
    one.interrupt();
  }

  void strike_worker() {
    const auto living = workers_.alive();
    if (living.empty()) return;
    const pid_t pid = living[world_.below(living.size())]->pid();
    const std::size_t choice = world_.below(3);
    world_.count("workers killed or suspended");
    world_.note(fmt::format("fate {} worker {}", choice == 0 ? "kills" : "suspends", pid));
    if (choice == 0) return world_.signal(pid, SIGKILL);
    world_.signal(pid, SIGSTOP);
    world_.in(world_.up_to(World::Milliseconds(10'000)),
              [this, pid] { world_.signal(pid, SIGCONT); });
  }

  void cut_power() {
    world_.note("the power is cut");
    world_.count("power cuts");
    workers_.cut_power();
    for (SimulatedOrchestrator* one : alive()) one->kill(true);
    world_.reboot();
    rebooted_ = true;
  }

  void decide() {
    const std::string& trial = ids_[world_.below(ids_.size())];
    const results::TrialFacts facts = user_->read().trial_facts(std::vector{trial}).front();
    if (!facts.known) return;
    const double time = world_.wall_seconds();
    const orchestrator::HostIdentity here = world_.host();
    orchestrator::DecisionResult result;
    const char* what = "";
    switch (world_.below(5)) {
      case 0:
        what = "cancels";
        result = orchestrator::cancel_trial(*user_, folder_.runs, trial, here, time);
        break;
      case 1:
      case 2:
        what = "retries";
        result = orchestrator::retry_trial(*user_, folder_.runs, trial, false, here, time);
        break;
      case 3:
        what = "discards";
        result = orchestrator::discard_trial(*user_, folder_.runs, trial, "a whim", time);
        break;
      default:
        what = "hides";
        result = orchestrator::hide_trial(*user_, folder_.runs, trial, "a whim", time);
    }
    world_.note(fmt::format("the user {} {}: {}", what, trial, result.text));
    world_.count("decisions");
  }

  // Fate rests: nothing is disturbed any more, and the user takes cancellations back.
  void rest() {
    disturbance_ = {};
    workers_.faults = {};
    world_.note("fate rests");
    for (const std::string& trial : ids_) {
      const results::TrialFacts facts = user_->read().trial_facts(std::vector{trial}).front();
      if (facts.cancelled && facts.stopped_early.empty()) {
        orchestrator::decide(*user_, folder_.runs, trial,
                             {protocol::Decision::What::uncancel, 0, world_.wall_seconds()});
      }
      orchestrator::unhide_trial(*user_, folder_.runs, trial, world_.wall_seconds());
    }
  }

  void complete() {
    const World::Time bound = world_.now() + kBound;
    const std::size_t most_starts = orchestrators_.size() + kMostStarts;
    // The last one starts when all others are gone and everything is done, and leaves it so.
    for (bool last = false; world_.found().empty();) {
      if (alive().empty()) {
        if (std::exchange(last, is_complete()) && last) break;
        start_one();
      }
      if (world_.now() > bound || orchestrators_.size() > most_starts) {
        return world_.fault("the trials are never complete");
      }
      step();
    }
    if (world_.found().empty()) check_end();
  }

  bool is_complete() const {
    const std::vector<results::TrialFacts> all = user_->read().trial_facts(ids_);
    return std::all_of(all.begin(), all.end(), [&](const results::TrialFacts& facts) {
      if (facts.attempts.empty() || facts.attempts.back().outcome == Outcome::open) return false;
      return (facts.result_attempt && !results::is_to_renew(facts)) ||
             (failing_.contains(facts.trial_id) && results::has_failed(facts, retries_));
    });
  }

  void step() {
    world_.count("steps");
    if (!world_.step()) start_one();
    const std::int64_t version = user_->read().data_version();
    if (version != std::exchange(version_, version)) check_database();
  }

  void check_database() {
    world_.count("database states");
    for (const results::TrialFacts& facts : user_->read().trial_facts(ids_)) {
      std::int64_t count = 0;
      for (const results::AttemptFacts& attempt : facts.attempts) {
        const std::int64_t number = attempt.attempt.number;
        const bool counts = number > std::max(facts.retried_after, facts.renewed_after);
        count += attempt.outcome == Outcome::finished && counts;
        // What a power cut took from its events may change it.
        const auto [known, is_new] =
            outcomes_.try_emplace({facts.trial_id, number}, attempt.outcome);
        const Outcome before = std::exchange(known->second, attempt.outcome);
        if (!is_new && before != Outcome::open && before != attempt.outcome && !rebooted_) {
          world_.fault(fmt::format("attempt {}/{} was {} and is {}", facts.trial_id, number,
                                   to_string(before), to_string(attempt.outcome)));
        }
        if (attempt.outcome == Outcome::open && number != facts.attempts.back().attempt.number) {
          world_.fault(
              fmt::format("attempt {}/{} is open, but not the last", facts.trial_id, number));
        }
      }
      if (!facts.stopped_early.empty()) {
        const std::int64_t last = facts.attempts.back().attempt.number;
        const auto [stopped, is_new] = stopped_.try_emplace(facts.trial_id, last);
        if (is_new) world_.count("trials stopped early");
        if (std::exchange(stopped->second, last) < last) {
          world_.fault(facts.trial_id + " was stopped early and is claimed");
        }
      } else {
        stopped_.erase(facts.trial_id);
      }
      if (count > 1) world_.fault(facts.trial_id + " was computed twice");
    }
  }

  void check_end() {
    const SimulatedOrchestrator& last = *orchestrators_.back();
    if (last.exit_code() != (failing_.empty() ? 0 : 1)) {
      world_.fault(fmt::format("the last run ends with exit code {}", last.exit_code()));
    }
    for (const auto& entry : fs::directory_iterator(orchestrator::locks_folder(folder_.runs))) {
      world_.fault("a lock is left: " + entry.path().filename().string());
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_.runs)) {
      if (entry.path().filename().string().find(".new-") != std::string::npos) {
        world_.fault("left incomplete: " + entry.path().string());
      }
    }
    if (sweeps_.undisturbed().empty()) return;  // this is the undisturbed run
    compare(folder_.database, "the results");
    if (world_.below(4) != 0) return;  // creating a database takes longer than all else
    const fs::path rebuilt = folder_.database.parent_path() / "rebuilt.db";
    orchestrator::rebuild(folder_.runs, rebuilt);
    compare(rebuilt, "the results of a rebuilt database");
  }

  void compare(const fs::path& database, const char* what) {
    std::set<std::string> others = failing_;
    const sweeps::Sweep& all = sweeps_.of(kMostTrials);
    for (std::size_t at = sweep_->trials.size(); at < all.trials.size(); ++at) {
      others.insert(all.trials[at].id.value);
    }
    auto wanted = sweeps_.undisturbed();
    std::erase_if(wanted, [&](const auto& row) {
      return others.contains(std::get<std::string>(row.front()));
    });
    const auto found = rows_of(database, failing_);
    if (found != wanted) {
      world_.fault(fmt::format("{} differ from the undisturbed ones: {} rows for {}", what,
                               found.size(), wanted.size()));
    }
  }

  const SimulatedSweeps& sweeps_;
  World world_;
  Workers workers_;
  SharedFolder folder_;
  std::set<std::string> kinds_;
  const sweeps::Sweep* sweep_ = nullptr;
  std::size_t most_alive_ = 1, spaces_ = 1;
  std::int64_t retries_ = 0, most_in_gang_ = 1;
  bool workers_stop_trials_ = false;
  World::Milliseconds grace_{0}, silence_{0};
  std::vector<std::string> ids_;
  std::set<std::string> failing_;  // trials that fail in every attempt
  Disturbance disturbance_;
  std::optional<results::Store> user_;
  std::vector<std::unique_ptr<SimulatedOrchestrator>> orchestrators_;
  std::map<std::pair<std::string, std::int64_t>, Outcome> outcomes_;
  std::map<std::string, std::int64_t> stopped_;  // by a rule; the last attempt then
  std::int64_t version_ = -1;
  bool is_striking_ = false, rebooted_ = false;
};

}  // namespace

const std::vector<std::string>& disturbances() {
  static const std::vector<std::string> kinds = {"death", "disk", "pause",   "workers",
                                                 "power", "user", "signals", "stops"};
  return kinds;
}

std::int64_t Tally::operator[](const char* what) const {
  const auto found = counts.find(what);
  return found == counts.end() ? 0 : found->second;
}

void Tally::add(const Tally& other) {
  hours += other.hours;
  for (const auto& [what, count] : other.counts) counts[what] += count;
}

SimulatedSweeps::SimulatedSweeps(const fs::path& folder) : empty_(folder / "empty.db") {
  write_unread_backbone(folder / "backbone");
  locations_.home = folder / "home";
  for (std::size_t which = 0; which < 2 * kMostTrials; ++which) {
    const std::size_t trials = 1 + which % kMostTrials;
    const fs::path file = folder / fmt::format("{}.yaml", which);
    {
      std::ofstream out(file);
      out << "sweep: simulated\nbase:\n  backbone: ./backbone\n  task: sst2\n"
             "  module.kind: adapter\nvariants:\n";
      for (std::size_t seed = 1; seed <= trials; ++seed) {
        out << fmt::format("  v{0}: {{seed: {0}}}\n", seed);
      }
      if (which >= kMostTrials) {
        out << "stop_early: {rule: halving, metric: accuracy, at: [1, 2], keep: 1/2}\n";
      }
    }
    sweeps_.push_back(sweeps::load_sweep(file, locations_));
  }
  Tally ignored;
  {
    const World world(1);
    results::Store{empty_};
  }
  Simulation undisturbed({}, *this, folder / "undisturbed", false);
  if (const std::string fault = undisturbed.run(ignored); !fault.empty()) {
    throw std::runtime_error("the undisturbed run: " + fault);
  }
  undisturbed_ = rows_of(undisturbed.database(), {});
}

Story simulate(const Plan& plan, const SimulatedSweeps& sweeps, const fs::path& folder,
               Tally& tally) {
  Story story;
  {
    Simulation simulation(plan, sweeps, folder, true);
    try {
      story.fault = simulation.run(tally);
    } catch (const std::exception& error) {
      story.fault = error.what();
    }
    story.lines = fmt::format("{}\n", fmt::join(simulation.world().notes(), "\n"));
  }
  fs::remove_all(folder);
  return story;
}

}  // namespace petlab::testing
