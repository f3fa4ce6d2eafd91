#include "orchestrator/slurm/command.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/programs.h"

namespace petlab::orchestrator {
namespace {

bool changes_answers(std::string_view entry) {
  for (const std::string_view prefix : {"SQUEUE_", "SCANCEL_", "SACCT_", "SCONTROL_", "SBATCH_WAIT",
                                        "SBATCH_TEST_ONLY", "SBATCH_ARRAY_INX", "SBATCH_JOB_NAME",
                                        "SLURM_JOB_NAME=", "SLURM_CLUSTERS=", "SBATCH_CLUSTERS="}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_without_surprises() {
  std::vector<std::string> kept;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!changes_answers(*entry)) kept.emplace_back(*entry);
  }
  return kept;
}

}  // namespace

base::ChildCommand slurm_command(std::vector<std::string> words, std::chrono::milliseconds limit,
                                 const std::string& cluster) {
  const char* search_path = std::getenv("PATH");
  const std::string program = base::find_program(words.front(), search_path ? search_path : "");
  base::ChildCommand command;
  command.program = program.empty() ? words.front() : program;
  if (!cluster.empty()) command.arguments.push_back("--clusters=" + cluster);
  command.arguments.insert(command.arguments.end(), words.begin() + 1, words.end());
  command.time_limit = limit;
  command.output_limit = kSlurmMostOutput;
  command.environment = environment_without_surprises();
  return command;
}

}  // namespace petlab::orchestrator
