#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"
#include "orchestrator/planning/device_choice.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/running/run.h"
#include "orchestrator/slurm/launcher.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// Jobs that wait or run in Slurm at once, where nothing else is asked for.
inline constexpr std::int64_t kJobsInFlight = 1000;

/// What `petlab run` is asked for.
struct RunRequest {
  std::filesystem::path database;
  std::filesystem::path runs;
  WorkerCommand worker;
  Device device = Device::automatic;
  /// 0: as many as usable cores, or as the GPUs take; in Slurm kJobsInFlight.
  std::int64_t slots = 0;
  std::int64_t pack = 1;              // workers at once on a GPU, at most
  bool one_process_a_trial = false;   // a fresh worker for each trial
  std::optional<SlurmOptions> slurm;  // workers as jobs of Slurm
  std::string on_event;               // a shell command for each event; empty: none
  /// A part of the sweep's trials, which alone is run; absent: all. The sweep is recorded whole.
  std::optional<sweeps::Sweep> part;
  /// runs, owner, slots, left_out and worker_numerics are filled in; to provenance is added what
  /// sweep and machine are.
  RunOptions options;
};

/// Runs a sweep, on this machine or in Slurm, until it is over: makes the folders, takes this
/// orchestrator's lock, records the sweep, clears up after the dead, runs. SIGINT counts as
/// Run::interrupt(), SIGTERM and SIGHUP as Run::terminate(), SIGUSR1 as Run::finish(); those
/// of the first three that are ignored stay so. SIGPIPE is ignored from here on. Throws what its
/// parts throw.
RunResult run_sweep(const sweeps::Sweep& sweep, const sweeps::Locations& locations,
                    const sweeps::Environment& environment, RunRequest request,
                    RunObserver& observer);

/// The plan of every trial, in the sweep's order. A database that is not there knows nothing.
std::vector<TrialPlan> plan_sweep(const sweeps::Sweep& sweep, const sweeps::Locations& locations,
                                  const std::filesystem::path& database,
                                  const std::filesystem::path& runs, const WorkerCommand& worker,
                                  std::optional<std::int64_t> retries);

}  // namespace petlab::orchestrator
