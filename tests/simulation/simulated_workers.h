#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/launching/launcher.h"
#include "tests/simulation/simulated_world.h"

namespace petlab::testing {

class WorkerProcess;

/// How likely a worker misbehaves in one attempt; all 0: never.
struct WorkerFaults {
  double crash = 0;        // dies at any step
  double leave = 0;        // exits with code 0, or begins its next trial, without an end
  double hang = 0;         // reports nothing more
  double deaf = 0;         // ignores SIGTERM
  double undying = 0;      // survives SIGKILL for a while
  double end_crashes = 0;  // dies right after it has finished
};

/// All workers of a world, which outlive their orchestrators.
class Workers {
 public:
  explicit Workers(World& world) : world_(world) {}

  World& world() { return world_; }
  void add(std::shared_ptr<WorkerProcess> process) { all_.push_back(std::move(process)); }
  std::vector<std::shared_ptr<WorkerProcess>> alive();
  /// The machine loses its power: each worker is gone, and what it has not synced may be lost.
  void cut_power();

  WorkerFaults faults;
  /// Trials that report a failure in every attempt.
  std::function<bool(const std::string& trial_id)> fails;

 private:
  World& world_;
  std::vector<std::shared_ptr<WorkerProcess>> all_;
};

/// What a launcher needs of its orchestrator.
struct LaunchingOrchestrator {
  std::string owner;
  std::string space;
  std::filesystem::path locks;
  std::filesystem::path slots_folder;
  int slots = 1;
  bool workers_stay = true;
  std::chrono::milliseconds grace{0};
  std::function<void()> nudge;     // something happened that its loop may see
  std::function<bool()> is_dead;   // it was killed: from now on nothing it does has an effect
  std::function<bool()> may_kill;  // its user asked it to kill workers
};

/// Starts simulated workers in slots that are locked files, as local_launcher.cpp does.
class SimulatedLauncher final : public orchestrator::Launcher {
 public:
  SimulatedLauncher(boost::asio::io_context& io, Workers& workers, LaunchingOrchestrator owner);

  std::optional<std::string> acquire_slot(std::int64_t gpus) override;
  void release_slot(const std::string& slot) override;
  orchestrator::SlotDevice device(const std::string&) const override { return {"cpu", "", 0}; }
  void use_device(const std::string&, orchestrator::DeviceUse, std::size_t) override {}
  std::unique_ptr<orchestrator::Worker> start(
      const std::string& slot, const std::vector<std::filesystem::path>& attempt_folders,
      std::function<void(orchestrator::WorkerEnd)> on_end) override;
  bool workers_stay() const override { return owner_.workers_stay; }
  std::string kind() const override { return "local"; }

 private:
  class Handle;
  struct Slot {
    orchestrator::LockFile lock;
    orchestrator::LockFile worker_lock;
    bool worker_lives = false;
  };
  boost::asio::io_context& io_;
  Workers& workers_;
  LaunchingOrchestrator owner_;
  std::map<std::string, Slot> slots_;
};

/// A worker: trains its attempts one after the other, and writes what docs/reference/
/// worker-protocol.md says. Its values depend on the seed and on every earlier step.
class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  WorkerProcess(Workers& workers, std::string space, const orchestrator::LockFile& worker_lock,
                const orchestrator::LockFile& slot_lock);
  /// Called after the constructor.
  void begin();
  void submit(const std::filesystem::path& folder);
  void close();

  pid_t pid() const { return pid_; }
  std::int64_t start() const { return start_; }
  const std::string& trial() const { return trial_; }
  bool busy() const { return !trial_.empty(); }
  /// Asked to end, it does within a grace period.
  bool can_stop() const { return !deaf_ && !hangs_ && !stopped_; }
  const std::filesystem::path& worker_lock() const { return worker_lock_; }
  /// The guardian acts when its orchestrator has died.
  void guard(std::chrono::milliseconds grace);
  void lose_unsynced();
  /// Ends the process at once.
  void end(orchestrator::WorkerEnd end);

  std::function<void(orchestrator::WorkerEnd)> on_end;  // tells the orchestrator, if it lives
  std::function<void()> on_write;

 private:
  void signalled(int number);
  void later(World::Milliseconds wait, std::function<void()> act);
  void next();
  void train(const std::filesystem::path& folder);
  void take_step();
  void write_checkpoint();
  void finish();
  void stop();
  void stop_trial();
  template <typename Body>
  void write(Body body, bool synced = false);

  Workers& workers_;
  World& world_;
  std::string space_;
  std::filesystem::path worker_lock_;
  base::FileDescriptor held_worker_lock_, held_slot_lock_;
  pid_t pid_ = 0;
  std::int64_t start_ = 0;
  std::vector<std::filesystem::path> line_;
  bool closed_ = false;
  bool stopping_ = false;
  bool stopped_ = false;  // SIGSTOP
  std::vector<std::function<void()>> while_stopped_;
  // Of the current attempt.
  std::string trial_;
  std::filesystem::path folder_;
  base::FileDescriptor events_;
  std::int64_t seq_ = 0, step_ = 0, size_ = 0, synced_ = 0;
  std::uint64_t state_ = 0;
  std::int64_t misbehaves_at_ = 0;
  bool crashes_ = false, leaves_ = false, hangs_ = false, deaf_ = false, undying_ = false;
  bool crashes_at_end_ = false;
};

}  // namespace petlab::testing
