#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/child.h"

namespace petlab::orchestrator {

/// Time limit for one Slurm command.
inline constexpr std::chrono::minutes kSlurmAnswerLimit{2};
/// In bytes. squeue prints some hundred bytes per job, and a user may have a million jobs.
inline constexpr std::size_t kSlurmMostOutput = std::size_t{512} << 20;

/// A command that runs one of Slurm's programs (sbatch, squeue, scancel, scontrol, sacct), found on
/// PATH, with its arguments. Environment variables that would change what it prints or requests are
/// removed. `cluster`: which cluster to ask (--clusters); empty: Slurm's default.
base::ChildCommand slurm_command(std::vector<std::string> words, std::chrono::milliseconds limit,
                                 const std::string& cluster = {});

}  // namespace petlab::orchestrator
