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

/// The default number of jobs that wait or run in Slurm at the same time.
inline constexpr std::int64_t kJobsInFlight = 1000;

/// The request that `petlab run` passes to run_sweep().
struct RunRequest {
  std::filesystem::path database;
  std::filesystem::path runs;
  WorkerCommand worker;
  Device device = Device::automatic;
  /// Maximum number of parallel workers. 0: as many as the usable cores or the GPUs allow; in
  /// Slurm, kJobsInFlight.
  std::int64_t slots = 0;
  std::int64_t pack = 1;              // maximum number of parallel workers on a GPU
  std::int64_t gang = 1;              // --gang, as GangRequest::size
  bool one_process_a_trial = false;   // a fresh worker for each trial
  std::optional<SlurmOptions> slurm;  // workers are jobs of Slurm; absent: local
  std::chrono::seconds lease{0};      // OpenOptions::lease
  std::string on_event;               // a shell command for each event; empty: none
  /// The part of the sweep's trials to run; absent: all. The whole sweep is recorded in any case.
  std::optional<sweeps::Sweep> part;
  /// run_sweep() fills in runs, owner, slots, left_out, worker_numerics, has_memory_formula,
  /// most_in_gang, gang_rule, code and code_at_start, and adds the sweep and the machine to
  /// provenance.
  RunOptions options;
};

/// Runs a sweep, on this machine or in Slurm, until it is over: creates the folders, takes this
/// orchestrator's lock, records the sweep, cleans up after dead orchestrators, and runs the trials.
/// SIGINT counts as Run::interrupt(), SIGTERM and SIGHUP as Run::terminate(), SIGUSR1 as
/// Run::finish(); those of the first three that are ignored stay ignored. SIGPIPE is ignored from
/// here on. Passes on the exceptions of its parts. A search by TPE adds trials to `sweep`, unless
/// only a part of the sweep is run.
RunResult run_sweep(sweeps::Sweep& sweep, const sweeps::Locations& locations,
                    const sweeps::Environment& environment, RunRequest request,
                    RunObserver& observer);

/// Returns the plan of every trial, in the sweep's order. A missing database counts as empty. If
/// any trial has an attempt, the worker is started to describe itself, and its code is captured.
std::vector<TrialPlan> plan_sweep(const sweeps::Sweep& sweep, const sweeps::Locations& locations,
                                  const sweeps::Environment& environment,
                                  const std::filesystem::path& database,
                                  const std::filesystem::path& runs, const WorkerCommand& worker,
                                  std::optional<std::int64_t> retries);

}  // namespace petlab::orchestrator
