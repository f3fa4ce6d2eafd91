#include "tests/simulation/simulated_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "orchestrator/host/error.h"
#include "orchestrator/host/worker_mark.h"
#include "protocol/events.h"
#include "protocol/trial_directory.h"
#include "tests/support/scripted_values.h"

namespace petlab::testing {
namespace {

constexpr std::int64_t kSteps = 4;
constexpr World::Milliseconds kLongestStep{1500};
constexpr World::Milliseconds kLongestStop{1000};  // less than any grace

// A copy keeps the lock as a child that inherits it does.
base::FileDescriptor inherited(const orchestrator::LockFile& lock) {
  return base::FileDescriptor(::fcntl(lock.fd(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

std::vector<std::shared_ptr<WorkerProcess>> Workers::alive() {
  std::erase_if(all_, [this](const auto& worker) { return world_.find(worker->pid()) == nullptr; });
  return all_;
}

void Workers::cut_power() {
  for (const std::shared_ptr<WorkerProcess>& worker : alive()) {
    worker->on_end = nullptr;
    worker->lose_unsynced();
    worker->end({orchestrator::Killed{9}, ""});
  }
}

WorkerProcess::WorkerProcess(Workers& workers, std::string space,
                             const orchestrator::LockFile& worker_lock,
                             const orchestrator::LockFile& slot_lock)
    : workers_(workers),
      world_(workers.world()),
      space_(std::move(space)),
      worker_lock_(worker_lock.file()),
      held_worker_lock_(inherited(worker_lock)),
      held_slot_lock_(inherited(slot_lock)) {}

void WorkerProcess::begin() {
  SimulatedProcess process;
  process.space = space_;
  process.worker_lock = worker_lock_.string();
  process.on_signal = [self = weak_from_this()](int number) {
    if (const auto worker = self.lock()) worker->signalled(number);
  };
  pid_ = world_.start_process(std::move(process));
  start_ = world_.find(pid_)->start;
  later(world_.up_to(World::Milliseconds(50)), [this] { next(); });
}

void WorkerProcess::later(World::Milliseconds wait, std::function<void()> act) {
  world_.in(wait, [self = shared_from_this(), act = std::move(act)] {
    if (self->world_.find(self->pid_) == nullptr) return;
    if (self->stopped_) return self->while_stopped_.push_back(act);
    act();
  });
}

void WorkerProcess::submit(const std::filesystem::path& folder) {
  line_.push_back(folder);
  if (!busy()) later(world_.up_to(World::Milliseconds(2)), [this] { next(); });
}
void WorkerProcess::close() {
  closed_ = true;
  if (!busy()) later(world_.up_to(World::Milliseconds(2)), [this] { next(); });
}

void WorkerProcess::signalled(int number) {
  switch (number) {
    case SIGKILL:
      if (undying_) {  // in an uninterruptible wait: it does nothing more
        undying_ = false;
        hangs_ = stopping_ = true;
        trial_.clear();
        return world_.in(world_.up_to(World::Milliseconds(10'000)),
                         [self = shared_from_this()] { self->signalled(SIGKILL); });
      }
      return end({orchestrator::Killed{9}, ""});
    case SIGSTOP:
      stopped_ = true;
      return;
    case SIGCONT:
      stopped_ = false;
      for (const auto& act : std::exchange(while_stopped_, {})) {
        later(World::Milliseconds(0), act);
      }
      return;
    default:
      if (stopping_ || deaf_) return;
      stopping_ = true;
      if (!busy())
        return later(World::Milliseconds(0), [this] { end({orchestrator::Exited{3}, ""}); });
      if (!hangs_) later(world_.up_to(kLongestStop), [this] { stop(); });
  }
}

void WorkerProcess::guard(std::chrono::milliseconds grace) {
  world_.in(world_.up_to(World::Milliseconds(50)), [self = shared_from_this(), grace] {
    if (self->world_.find(self->pid_) == nullptr) return;
    if (orchestrator::first_to_ask(orchestrator::asked_file(self->worker_lock_).c_str())) {
      self->world_.signal(self->pid_, SIGTERM);
    }
    self->world_.signal(self->pid_, SIGCONT);
    self->world_.in(grace, [self] { self->world_.signal(self->pid_, SIGKILL); });
  });
}

void WorkerProcess::lose_unsynced() {
  if (!events_ || size_ == synced_) return;
  const std::int64_t left =
      synced_ +
      static_cast<std::int64_t>(world_.below(static_cast<std::size_t>(size_ - synced_) + 1));
  if (::ftruncate(events_.get(), left) != 0) throw std::runtime_error("ftruncate failed");
  world_.note(fmt::format("the power cut leaves {} of {} bytes of {}", left, size_, trial_));
}

void WorkerProcess::end(orchestrator::WorkerEnd end) {
  if (world_.find(pid_) == nullptr) return;
  world_.note(fmt::format("worker {} ends: {}", pid_, to_string(end)));
  world_.end_process(pid_);
  events_.reset();
  held_worker_lock_.reset();
  held_slot_lock_.reset();
  trial_.clear();
  if (on_end) std::exchange(on_end, nullptr)(std::move(end));
}

void WorkerProcess::next() {
  if (busy() || stopping_) return;
  if (!line_.empty()) {
    const std::filesystem::path folder = line_.front();
    line_.erase(line_.begin());
    return train(folder);
  }
  if (closed_) end({orchestrator::Exited{0}, ""});
}

template <typename Body>
void WorkerProcess::write(Body body, bool synced) {
  const std::string line =
      protocol::to_line({seq_++, world_.wall_seconds(), std::move(body)}) + "\n";
  base::write_all(events_.get(), line);
  size_ += static_cast<std::int64_t>(line.size());
  if (synced) synced_ = size_;
  if (on_write) on_write();
}

void WorkerProcess::train(const std::filesystem::path& folder) {
  world_.count("attempts");
  folder_ = folder;
  const protocol::TrialDirectory directory(folder);
  const protocol::TrialFile trial = protocol::read_trial_file(directory.trial_json());
  for (const std::shared_ptr<WorkerProcess>& other : workers_.alive()) {
    if (other.get() != this && other->trial() == trial.trial_id) {
      world_.fault(fmt::format("workers {} and {} train trial {} at the same time", other->pid(),
                               pid_, trial.trial_id));
    }
  }
  world_.note(fmt::format("worker {} begins {}/{}", pid_, trial.trial_id, trial.attempt));
  trial_ = trial.trial_id;
  events_ = base::FileDescriptor(
      ::open(directory.events().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!events_) {
    world_.fault(fmt::format("attempt {}/{} was begun before", trial.trial_id, trial.attempt));
    return end({orchestrator::Exited{1}, ""});
  }
  seq_ = step_ = size_ = synced_ = 0;
  const WorkerFaults& faults = workers_.faults;
  crashes_ = world_.chance(faults.crash);
  leaves_ = world_.chance(faults.leave);
  hangs_ = false;
  deaf_ = world_.chance(faults.deaf);
  undying_ = world_.chance(faults.undying);
  crashes_at_end_ = world_.chance(faults.end_crashes);
  const bool will_hang = world_.chance(faults.hang);
  misbehaves_at_ =
      crashes_ || leaves_ || will_hang ? static_cast<std::int64_t>(world_.below(kSteps + 1)) : -1;
  state_ = mixed(trial.config.seed.value);
  if (trial.resume) {
    std::ifstream in(folder / trial.resume->checkpoint);
    if (!(in >> step_ >> state_) || step_ != trial.resume->step) {
      world_.fault(fmt::format("{}/{} resumes from step {}, but its checkpoint is of step {}",
                               trial.trial_id, trial.attempt, trial.resume->step, step_));
    }
  }
  protocol::Started started;
  started.pid = pid_;
  started.worker = "simulated";
  started.version = "1";
  started.numerics = R"({"version":"1"})";
  write(started);
  if (workers_.fails && workers_.fails(trial_)) {
    write(protocol::Failed{"the simulation says so"}, true);
    trial_.clear();
    return later(World::Milliseconds(0), [this] { next(); });
  }
  later(world_.up_to(kLongestStep), [this, will_hang] {
    if (misbehaves_at_ == 0 && will_hang) hangs_ = true;
    take_step();
  });
}

void WorkerProcess::take_step() {
  if (!busy() || hangs_ || stopping_) return;
  if (!deaf_ && std::filesystem::exists(protocol::TrialDirectory(folder_).stop())) {
    return stop_trial();
  }
  if (step_ >= misbehaves_at_ && misbehaves_at_ >= 0) {
    misbehaves_at_ = -1;
    if (crashes_) return end({orchestrator::Killed{SIGSEGV}, ""});
    if (leaves_ && world_.chance(0.5)) return end({orchestrator::Exited{0}, ""});
    if (leaves_) {
      trial_.clear();
      return next();
    }
    hangs_ = true;
    return;
  }
  if (step_ == kSteps) return finish();
  ++step_;
  state_ = mixed(state_ ^ static_cast<std::uint64_t>(step_));
  write(protocol::Progress{step_, kSteps, unit(state_)});
  write(protocol::Metric{step_, "train", "sst2", "loss", unit(mixed(state_))});
  if (step_ % 2 == 0) {
    write(protocol::Metric{step_, "validation", "sst2", "accuracy", unit(mixed(state_ + 1000))});
    if (step_ < kSteps) write_checkpoint();
  }
  later(world_.up_to(kLongestStep), [this] { take_step(); });
}

void WorkerProcess::write_checkpoint() {
  const protocol::TrialDirectory directory(folder_);
  std::filesystem::create_directories(directory.checkpoint());
  const std::string name = fmt::format("step-{}.txt", step_);
  std::ofstream(directory.checkpoint() / name) << step_ << " " << state_ << "\n";
  write(protocol::Checkpoint{step_, "checkpoint/" + name}, true);
}

void WorkerProcess::finish() {
  write(protocol::Metric{step_, "test", "sst2", "score", unit(mixed(state_))});
  protocol::Finished finished;
  finished.step = step_;
  write(finished, true);
  world_.note(fmt::format("worker {} finishes {}", pid_, trial_));
  trial_.clear();
  if (crashes_at_end_) return end({orchestrator::Killed{SIGABRT}, ""});
  next();
}

void WorkerProcess::stop_trial() {
  world_.count("trials stopped alone");
  if (step_ > 0 && step_ < kSteps) write_checkpoint();
  write(protocol::Stopped{step_}, true);
  trial_.clear();
  next();
}

void WorkerProcess::stop() {
  if (busy() && !hangs_ && step_ > 0 && step_ < kSteps) write_checkpoint();
  end({orchestrator::Exited{3}, ""});
}

// --- The launcher

class SimulatedLauncher::Handle final : public orchestrator::Worker {
 public:
  Handle(SimulatedLauncher& launcher, std::string slot, std::shared_ptr<WorkerProcess> process,
         std::function<void(orchestrator::WorkerEnd)> on_end)
      : launcher_(launcher), slot_(std::move(slot)), process_(std::move(process)) {
    launch_.pid = process_->pid();
    launch_.pid_start = process_->start();
    launch_.device = slot_;
    process_->on_write = launcher_.owner_.nudge;
    process_->on_end = [this, on_end = std::move(on_end)](orchestrator::WorkerEnd end) {
      over_ = true;
      boost::asio::post(launcher_.io_, [alive = std::weak_ptr(alive_), this, on_end,
                                        end = std::move(end)]() mutable {
        if (alive.expired()) return;
        forget_asking();
        on_end(std::move(end));
      });
      launcher_.owner_.nudge();
    };
  }
  ~Handle() override {
    process_->on_end = nullptr;
    process_->on_write = nullptr;
    if (over_ || launcher_.owner_.is_dead()) return;
    forget_asking();
    World& world = launcher_.workers_.world();
    world.note(fmt::format("worker {} is killed by its owner's end", process_->pid()));
    world.find(process_->pid())->on_signal(SIGKILL);
    if (world.find(process_->pid()) != nullptr) {
      launcher_.slots_.at(slot_).worker_lives = true;
    }
  }

  void submit(const std::vector<std::filesystem::path>& folders) override {
    for (const std::filesystem::path& folder : folders) {
      if (!over_) process_->submit(folder);
    }
  }
  void close() override {
    if (!over_) process_->close();
  }
  void log_to(const std::filesystem::path&) override {}
  std::string last_lines(const std::filesystem::path&) override { return {}; }
  void stop() override {
    if (over_ || launcher_.owner_.is_dead()) return;
    World& world = launcher_.workers_.world();
    if (!std::exchange(asked_, true)) asked_at_ = world.now();
    if (orchestrator::first_to_ask(asked().c_str())) world.signal(process_->pid(), SIGTERM);
    world.signal(process_->pid(), SIGCONT);
  }
  void kill() override {
    if (over_ || launcher_.owner_.is_dead()) return;
    World& world = launcher_.workers_.world();
    // A worker that was only asked to stop gets the time to do so.
    if (asked_ && process_->can_stop() && !launcher_.owner_.may_kill() &&
        world.now() - asked_at_ < launcher_.owner_.grace) {
      world.fault(fmt::format("worker {} is killed while it stops", process_->pid()));
    }
    world.signal(process_->pid(), SIGKILL);
  }
  const results::Launch& launch() const override { return launch_; }

 private:
  std::filesystem::path asked() const { return orchestrator::asked_file(process_->worker_lock()); }
  void forget_asking() {
    std::error_code ignored;
    if (std::exchange(asked_, false)) std::filesystem::remove(asked(), ignored);
  }

  SimulatedLauncher& launcher_;
  std::string slot_;
  std::shared_ptr<WorkerProcess> process_;
  results::Launch launch_;
  bool over_ = false;
  bool asked_ = false;
  World::Time asked_at_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

SimulatedLauncher::SimulatedLauncher(boost::asio::io_context& io, Workers& workers,
                                     LaunchingOrchestrator owner)
    : io_(io), workers_(workers), owner_(std::move(owner)) {}

std::optional<std::string> SimulatedLauncher::acquire_slot(std::int64_t) {
  for (int number = 0; number < owner_.slots; ++number) {
    const std::string name = fmt::format("cpu-{}", number);
    if (slots_.contains(name)) continue;
    auto lock = orchestrator::LockFile::try_lock(owner_.slots_folder / (name + ".lock"));
    if (!lock) continue;
    auto worker =
        orchestrator::LockFile::try_lock(owner_.locks / (owner_.owner + "." + name + ".lock"));
    if (!worker) throw orchestrator::Error(name + ": an earlier worker holds the worker's lock");
    slots_.emplace(name, Slot{std::move(*lock), std::move(*worker)});
    return name;
  }
  return std::nullopt;
}

void SimulatedLauncher::release_slot(const std::string& name) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  std::error_code ignored;
  if (!found->second.worker_lives && !owner_.is_dead()) {
    std::filesystem::remove(found->second.worker_lock.file(), ignored);
  }
  slots_.erase(found);
}

std::unique_ptr<orchestrator::Worker> SimulatedLauncher::start(
    const std::string& slot, const std::vector<std::filesystem::path>& folders,
    std::function<void(orchestrator::WorkerEnd)> on_end) {
  const Slot& held = slots_.at(slot);
  auto process =
      std::make_shared<WorkerProcess>(workers_, owner_.space, held.worker_lock, held.lock);
  workers_.add(process);
  process->begin();
  for (const std::filesystem::path& folder : folders) process->submit(folder);
  if (!owner_.workers_stay) process->close();
  return std::make_unique<Handle>(*this, slot, std::move(process), std::move(on_end));
}

}  // namespace petlab::testing
