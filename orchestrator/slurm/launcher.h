#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/launching/worker_command.h"

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

/// The programs that the launcher requires. It also uses sacct if that is installed.
inline constexpr std::array<const char*, 4> kSlurmPrograms = {"sbatch", "squeue", "scancel",
                                                              "scontrol"};

struct SlurmOptions {
  std::string partition;  // empty: Slurm's default; the next three likewise
  std::string account;
  std::string gpus;                    // per worker, as in sbatch --gres=gpu:…: "1", "a100:1"
  std::string time;                    // time limit of a job: "2-12:00:00"
  std::vector<std::string> arguments;  // additional sbatch arguments
  std::vector<std::string> setup;  // shell commands of a job before its worker: "module load cuda"
  std::string cluster;             // empty: Slurm's default
  std::chrono::milliseconds poll = std::chrono::seconds(5);  // time between polls of all jobs
  std::chrono::seconds idle =
      std::chrono::minutes(2);  // a job without a trial ends after this time
  int node_workers = 0;  // a job has whole nodes and this many workers; 0: one, with others' jobs
  bool one_trial_a_job = false;  // or for each worker of a job
  // Filled in by run_sweep.
  WorkerCommand worker;        // must have the same path on every node
  std::filesystem::path runs;  // absolute; on a file system shared by the nodes
  std::string owner;
  std::string sweep;
  bool detach = false;
  int threads = 1;                               // CPUs per worker, and OMP_NUM_THREADS if unset
  std::function<void(const std::string&)> note;  // prints a line to the user
};

/// Throws std::invalid_argument naming an invalid option of `petlab run`.
void check_slurm_options(const SlurmOptions& options);
/// Sets the cluster from --slurm-arg=--clusters=NAME, or else from SBATCH_CLUSTERS or
/// SLURM_CLUSTERS (of `environment`). Throws std::invalid_argument if that is not one cluster.
void choose_cluster(SlurmOptions& options,
                    const std::function<std::optional<std::string>(const char*)>& environment);

/// Runs each worker as a Slurm job, submitted in arrays, that takes trials once it has begun
/// (docs/internals/orchestrator.md, "Slurm jobs"). Throws std::invalid_argument if sbatch, squeue,
/// scancel or scontrol is not on PATH.
std::unique_ptr<Launcher> make_slurm_launcher(boost::asio::io_context& loop, SlurmOptions options);

}  // namespace petlab::orchestrator
