#include "tests/simulation/simulated_orchestrator.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "orchestrator/records/sweep_record.h"
#include "orchestrator/recovery/evidence.h"
#include "orchestrator/running/event_loop.h"
#include "results/store.h"
#include "sweeps/identity.h"

namespace petlab::testing {
namespace {

constexpr std::size_t kStack = 1 << 20;
// A loaded machine runs a process a while after it could.
constexpr World::Milliseconds kLongestDelay{30};

boost::context::pooled_fixedsize_stack& stacks() {
  static boost::context::pooled_fixedsize_stack pool(kStack);
  return pool;
}

}  // namespace

void Exceptions::swap() {
  // The layout of __cxa_eh_globals in the C++ ABI.
  struct Globals {
    void* handled;
    unsigned uncaught;
  };
  auto* const thread = reinterpret_cast<Globals*>(abi::__cxa_get_globals());
  std::swap(thread->handled, handled_);
  std::swap(thread->uncaught, uncaught_);
}

struct SimulatedOrchestrator::DiskError : results::Error {
  using results::Error::Error;
};

class SimulatedOrchestrator::Loop final : public orchestrator::EventLoop {
 public:
  Loop(boost::asio::io_context& io, SimulatedOrchestrator& owner) : EventLoop(io), owner_(owner) {}
  Time now() const override { return owner_.loop_time_.value_or(owner_.world_.now()); }
  double wall_seconds() const override { return owner_.world_.wall_seconds(); }
  void poll() override {
    io().restart();
    io().poll();
  }
  void wait(std::optional<Time> wake) override {
    if (owner_.dead_) {
      owner_.loop_time_ = std::max(now(), wake.value_or(now() + std::chrono::hours(1)));
      return;
    }
    io().restart();
    if (io().poll() > 0) return;
    owner_.sleep(wake, true);
    poll();
  }

 private:
  SimulatedOrchestrator& owner_;
};

SimulatedOrchestrator::SimulatedOrchestrator(Workers& workers, const SharedFolder& folder,
                                             const sweeps::Sweep& sweep,
                                             const sweeps::Locations& locations, Options options,
                                             const Disturbance& disturbance)
    : workers_(workers),
      world_(workers.world()),
      folder_(folder),
      sweep_(sweep),
      locations_(locations),
      options_(std::move(options)),
      disturbance_(disturbance) {
  SimulatedProcess process;
  process.space = options_.space;
  actor_.space = options_.space;
  actor_.pid = world_.start_process(std::move(process));
  name_ = orchestrator::to_string({actor_.pid, world_.find(actor_.pid)->start, "simulate"});
}

void SimulatedOrchestrator::begin() {
  begun_ = true;
  world_.count("orchestrators");
  world_.note(name_ + " begins");
  fiber_ = boost::context::fiber(std::allocator_arg, stacks(),
                                 [this](boost::context::fiber&& scheduler) {
                                   scheduler_ = std::move(scheduler);
                                   body();
                                   return std::move(scheduler_);
                                 });
  resume();
}

void SimulatedOrchestrator::resume() {
  const World::Actor before = std::exchange(world_.actor, actor_);
  const auto point =
      std::exchange(world_.on_point, [this](std::string_view name) { at_point(name); });
  exceptions_.swap();
  fiber_ = std::move(fiber_).resume();
  exceptions_.swap();
  world_.actor = before;
  world_.on_point = point;
}

void SimulatedOrchestrator::sleep(std::optional<World::Time> until, bool wakes_early) {
  const std::uint64_t number = ++sleep_;
  wakes_early_ = wakes_early;
  if (until) {
    world_.in(
        std::max(*until - world_.now(), World::Clock::duration(0)) + world_.up_to(kLongestDelay),
        [this, number] {
          if (sleep_ == number && !over_) resume();
        });
  }
  scheduler_ = std::move(scheduler_).resume();
  ++sleep_;
  if (dying_) {
    dead_ = true;
    throw Killed();
  }
}

void SimulatedOrchestrator::nudge() {
  if (over_ || !wakes_early_) return;
  wakes_early_ = false;
  world_.in(world_.up_to(kLongestDelay), [this, number = sleep_] {
    if (sleep_ == number && !over_) resume();
  });
}

void SimulatedOrchestrator::suspend(World::Milliseconds time) {
  if (!is_alive() || !wakes_early_) return;
  wakes_early_ = false;
  world_.note(fmt::format("{} is suspended for {} ms", name_, time.count()));
  world_.count("pauses at a random moment");
  world_.in(time, [this, number = ++sleep_] {
    if (sleep_ == number && !over_) resume();
  });
}

void SimulatedOrchestrator::kill(bool with_guardians) {
  if (!is_alive()) return;
  world_.note(fmt::format("{} is killed{}", name_, with_guardians ? " with its guardians" : ""));
  world_.count("deaths at a random moment");
  dying_ = true;
  ++sleep_;
  resume();
  if (!with_guardians) wake_guardians();
}

void SimulatedOrchestrator::wake_guardians() {
  for (const std::shared_ptr<WorkerProcess>& worker : workers_.alive()) {
    if (worker->worker_lock().filename().string().starts_with(name_ + ".")) {
      worker->guard(options_.run.grace);
    }
  }
}

void SimulatedOrchestrator::interrupt() {
  if (!is_alive() || io_ == nullptr) return;
  world_.note(name_ + " gets SIGINT");
  world_.count("signals");
  may_kill_ = ++interrupts_ >= 3 || may_kill_;
  boost::asio::post(*io_, [this] { run_->interrupt(); });
  nudge();
}

void SimulatedOrchestrator::terminate() {
  if (!is_alive() || io_ == nullptr) return;
  world_.note(name_ + " gets SIGTERM");
  world_.count("signals");
  interrupts_ = std::max(interrupts_, 2);
  boost::asio::post(*io_, [this] { run_->terminate(); });
  nudge();
}

void SimulatedOrchestrator::at_point(std::string_view point) {
  if (dead_) return;
  if (world_.chance(disturbance_.death)) {
    world_.note(fmt::format("{} dies at {}", name_, point));
    world_.count(fmt::format("deaths at {}", point));
    dead_ = dying_ = true;
    world_.in(World::Milliseconds(0), [this] { wake_guardians(); });
    throw Killed();
  }
  if (world_.chance(disturbance_.error)) {
    world_.note(fmt::format("{} cannot write at {}", name_, point));
    world_.count("errors of the disk");
    throw DiskError("the simulated disk is full");
  }
  // Others would wait for the transaction, and that takes real time.
  const bool in_transaction =
      point == "events_read" || point == "before_commit" || point == "recover_forget";
  if (in_transaction || !world_.chance(disturbance_.pause)) return;
  const World::Milliseconds time = world_.up_to(disturbance_.longest_pause);
  world_.note(fmt::format("{} stands still at {} for {} ms", name_, point, time.count()));
  world_.count(fmt::format("pauses at {}", point));
  sleep(world_.now() + time, false);
}

void SimulatedOrchestrator::trial_over(const std::string& trial, sweeps::TrialState state,
                                       const std::string& reason, const std::string&) {
  world_.note(fmt::format("{}: trial {} is {} {}", name_, trial, sweeps::to_string(state), reason));
}
void SimulatedOrchestrator::note(const std::string& line) { world_.note(name_ + ": " + line); }

void SimulatedOrchestrator::body() {
  try {
    run();
  } catch (const Killed&) {
  } catch (const DiskError&) {
    world_.note(name_ + " ends with an error");
  } catch (const std::exception& error) {
    world_.fault(fmt::format("{} ends with an error: {}", name_, error.what()));
  }
  run_ = nullptr;
  io_ = nullptr;
  over_ = true;
  ++sleep_;
  world_.end_process(actor_.pid);
}

// As run_sweep().
void SimulatedOrchestrator::run() {
  orchestrator::RunOptions options = options_.run;
  options.runs = folder_.runs;
  options.owner = name_;
  options.slots = options_.slots;
  const std::filesystem::path locks = orchestrator::locks_folder(folder_.runs);
  std::filesystem::create_directories(locks);
  const auto lock = orchestrator::LockFile::try_lock(orchestrator::owner_lock(locks, name_));
  if (!lock) throw std::runtime_error("the lock of a new name is held");
  // As OrchestratorLock in run_sweep.cpp.
  const std::shared_ptr<void> removed_at_end(nullptr, [&](void*) {
    std::error_code ignored;
    if (!dead_) std::filesystem::remove(lock->file(), ignored);
  });
  const orchestrator::HostIdentity here = orchestrator::this_host();
  lock->write(nlohmann::json({{"pid", actor_.pid},
                              {"host", here.host},
                              {"boot_id", here.boot_id},
                              {"pid_namespace", here.pid_namespace},
                              {"database", folder_.database.string()},
                              {"sweep", sweep_.name}})
                  .dump() +
              "\n");
  results::Store store(folder_.database);
  results::SweepRow row;
  row.name = sweep_.name;
  row.file = sweep_.file.string();
  row.digest = sweep_.digest;
  std::vector<results::TrialRow> trials;
  for (const sweeps::SweepTrial& trial : sweep_.trials) {
    trials.push_back({trial.id.value, sweeps::to_json(trial.config).dump(), "", {}, {}});
    row.members.push_back({trial.id.value, trial.variants.front()});
  }
  orchestrator::record_sweep(store, folder_.runs, row, trials, world_.wall_seconds());

  boost::asio::io_context io;
  Loop loop(io, *this);
  LaunchingOrchestrator launching;
  launching.owner = name_;
  launching.space = options_.space;
  launching.locks = locks;
  launching.slots_folder = folder_.slots;
  launching.slots = options_.slots;
  launching.workers_stay = options_.workers_stay;
  launching.grace = options.grace;
  launching.nudge = [this] { nudge(); };
  launching.is_dead = [this] { return dead_; };
  launching.may_kill = [this] { return may_kill_; };
  SimulatedLauncher launcher(io, workers_, std::move(launching));
  orchestrator::Run run(loop, store, launcher, {sweep_, locations_, options}, *this);
  io_ = &io;
  run_ = &run;
  const orchestrator::RunResult result = run.execute();
  exit_code_ = orchestrator::exit_code(result);
  world_.note(fmt::format("{} ends with exit code {} {}", name_, exit_code_, result.problem));
}

}  // namespace petlab::testing
