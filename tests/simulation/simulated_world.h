#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "orchestrator/host/process_identity.h"

namespace petlab::testing {

/// A process that exists only in a World.
struct SimulatedProcess {
  std::string space;        // its pid namespace
  std::string worker_lock;  // the value of PETLAB_WORKER in its environment
  std::function<void(int signal)> on_signal;
  std::int64_t start = 0;  // clock ticks after boot
};

/// A machine with a clock, processes and pid namespaces that exist only in the simulation. The
/// functions of orchestrator/host and base that ask the kernel about processes, time and fault
/// points are defined for it in simulated_world.cpp; the linker takes those instead of petlab's.
/// Files, their locks and the database are real. One world exists at a time.
class World {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  static World& current();

  Time now() const { return now_; }
  double seconds() const { return std::chrono::duration<double>(now_ - Time()).count(); }
  double wall_seconds() const { return 1'000'000'000 + seconds(); }

  std::size_t below(std::size_t bound);
  bool chance(double probability);
  Milliseconds up_to(Milliseconds most);

  /// Does something later.
  void in(Clock::duration wait, std::function<void()> act);
  /// Advances the clock to the next act and does it. False if there is none.
  bool step();

  pid_t start_process(SimulatedProcess process);
  SimulatedProcess* find(pid_t pid);
  /// The processes of the namespace of whoever acts now.
  SimulatedProcess* visible(pid_t pid);
  void end_process(pid_t pid) { processes_.erase(pid); }
  /// The signal arrives a moment later.
  void signal(pid_t pid, int number);
  std::vector<pid_t> with_lock(const std::string& lock);

  /// Everything that was alive has ended by the caller; the next boot begins.
  void reboot() { ++boots_; }
  orchestrator::HostIdentity host() const;

  /// Who acts now: the pid and the pid namespace that petlab's code sees.
  struct Actor {
    pid_t pid = 1;
    std::string space = "pid:[1]";
  };
  Actor actor;
  /// Called at each fault point.
  std::function<void(std::string_view point)> on_point;

  /// A line for the reader of a failure; the last ones are kept.
  void note(std::string line);
  /// Counts what happened, for the reader of many seeds.
  void count(const std::string& what, std::int64_t times = 1) { counts_[what] += times; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }
  const std::deque<std::string>& notes() const { return notes_; }
  /// A fact that must never be: ends the simulation of this seed.
  void fault(std::string what);
  const std::string& found() const { return found_; }

 private:
  std::mt19937_64 random_;
  Time now_ = Time() + std::chrono::seconds(1000);
  std::multimap<Time, std::function<void()>> acts_;
  std::map<pid_t, SimulatedProcess> processes_;
  pid_t last_pid_ = 1000;
  int boots_ = 1;
  std::deque<std::string> notes_;
  std::map<std::string, std::int64_t> counts_;
  std::string found_;
};

}  // namespace petlab::testing
