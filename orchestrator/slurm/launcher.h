#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/launching/worker_command.h"

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

/// What the launcher cannot do without; sacct beside them where it is there.
inline constexpr std::array<const char*, 4> kSlurmPrograms = {"sbatch", "squeue", "scancel",
                                                              "scontrol"};

struct SlurmOptions {
  std::string partition;  // empty: Slurm's default, as for the next ones
  std::string account;
  std::string gpus;                    // of a trial, as sbatch --gres=gpu:… wants: "1", "a100:1"
  std::string time;                    // of a job: "2-12:00:00"
  std::vector<std::string> arguments;  // more words for sbatch, each one word
  std::chrono::milliseconds poll = std::chrono::seconds(5);  // between two looks at all jobs
  // Filled in by run_sweep.
  WorkerCommand worker;        // at the same place on every node
  std::filesystem::path runs;  // absolute, on a file system that the nodes share
  std::string owner;
  std::string sweep;
  int threads = 1;  // CPUs of a job, and OMP_NUM_THREADS where it is not set
  std::function<void(const std::string&)> note;  // a line for the user
};

/// Throws std::invalid_argument naming the option of `petlab run` that cannot be.
void check_slurm_options(const SlurmOptions& options);

/// Workers as jobs of Slurm, a trial each, handed in as arrays (docs/internals/orchestrator.md,
/// "Slurm jobs"). Throws std::invalid_argument where sbatch, squeue, scancel or scontrol is not on
/// PATH.
std::unique_ptr<Launcher> make_slurm_launcher(boost::asio::io_context& loop, SlurmOptions options);

}  // namespace petlab::orchestrator
