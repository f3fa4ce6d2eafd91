#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/child.h"

namespace petlab::orchestrator {

/// How long a command of Slurm may take to answer.
inline constexpr std::chrono::minutes kSlurmAnswerLimit{2};
/// Bytes: squeue prints some hundred a job, and a user may have a million.
inline constexpr std::size_t kSlurmMostOutput = std::size_t{512} << 20;

/// One of Slurm's programs (sbatch, squeue, scancel, scontrol, sacct), which is looked for on PATH,
/// with its arguments. Variables that would change what it prints or asks are taken out of its
/// environment.
base::ChildCommand slurm_command(std::vector<std::string> words, std::chrono::milliseconds limit);

}  // namespace petlab::orchestrator
