#pragma once

#include <boost/context/fiber.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/running/run.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"
#include "tests/simulation/simulated_workers.h"

namespace petlab::testing {

/// The files that all orchestrators of a simulation share.
struct SharedFolder {
  std::filesystem::path database, runs, slots;
};

/// How an orchestrator is disturbed while others run.
struct Disturbance {
  double death = 0;  // at a fault point
  double error = 0;  // there, of the disk
  double pause = 0;  // at a fault point, as on a machine where others get the processors
  World::Milliseconds longest_pause{3000};
};

/// The exceptions that a fiber handles at the moment. The C++ library keeps them for each thread.
class Exceptions {
 public:
  /// Exchanges them with those of the thread.
  void swap();

 private:
  void* handled_ = nullptr;
  unsigned uncaught_ = 0;
};

/// A `petlab run` in the simulation: petlab's Run, Store and Recovery as they are, in a fiber that
/// is left wherever the run would wait, and where it is suspended or killed.
class SimulatedOrchestrator final : public orchestrator::RunObserver {
 public:
  struct Options {
    std::string space;
    int slots = 2;
    bool workers_stay = true;
    orchestrator::RunOptions run;
  };
  SimulatedOrchestrator(Workers& workers, const SharedFolder& folder, const sweeps::Sweep& sweep,
                        const sweeps::Locations& locations, Options options,
                        const Disturbance& disturbance);

  /// Runs in the scheduler's context.
  void begin();
  /// SIGKILL. The guardians that stay ask its workers to stop.
  void kill(bool with_guardians);
  /// SIGSTOP for a while, if it waits.
  void suspend(World::Milliseconds time);
  /// SIGINT or SIGTERM.
  void interrupt();
  void terminate();

  bool is_over() const { return over_; }
  bool is_alive() const { return begun_ && !over_; }
  /// 0 to 3 as exit_code(); -1: it was killed.
  int exit_code() const { return exit_code_; }

  void status(const orchestrator::RunStatus&) override {}
  void trial_over(const std::string& trial, sweeps::TrialState state, const std::string& reason,
                  const std::string&) override;
  void note(const std::string& line) override;

 private:
  class Loop;
  struct DiskError;
  struct Killed {};  // leaves the fiber; nothing that its unwinding does has an effect

  void body();
  void run();
  void resume();
  void sleep(std::optional<World::Time> until, bool wakes_early);
  void nudge();
  void wake_guardians();
  void at_point(std::string_view point);

  Workers& workers_;
  World& world_;
  const SharedFolder& folder_;
  const sweeps::Sweep& sweep_;
  const sweeps::Locations& locations_;
  Options options_;
  const Disturbance& disturbance_;
  World::Actor actor_;
  std::string name_;
  boost::context::fiber fiber_, scheduler_;
  Exceptions exceptions_;
  bool begun_ = false, over_ = false, dying_ = false, dead_ = false;
  bool wakes_early_ = false;  // a nudge ends its sleep
  bool may_kill_ = false;     // its user pressed Ctrl-C a third time
  int interrupts_ = 0;
  std::uint64_t sleep_ = 0;  // the number of the current sleep; older alarms are void
  int exit_code_ = -1;
  std::optional<World::Time> loop_time_;  // while it unwinds
  boost::asio::io_context* io_ = nullptr;
  orchestrator::Run* run_ = nullptr;
};

}  // namespace petlab::testing
