#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/launching/worker_command.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

// The files by which an orchestrator and its Slurm jobs know of each other
// (docs/internals/orchestrator.md, "Slurm jobs"). They are on the file system that all hosts share.

/// One sbatch: an array of jobs, one attempt each. Its folder is `runs/.slurm/ID`, with `tasks` (a
/// line an attempt's folder: task 0 is the first), `job.sh`, and what a job prints apart from its
/// worker (`0.out`).
struct Submission {
  std::string id;  // "petlab.OWNER.N": also the jobs' name
  std::vector<std::filesystem::path> attempts;
};
std::filesystem::path submissions_folder(const std::filesystem::path& runs);
std::filesystem::path submission_folder(const std::filesystem::path& runs, const std::string& id);
std::string submission_id(const std::string& owner, std::int64_t number);

/// Writes the folder, all or nothing; synced. `threads` is OMP_NUM_THREADS where the environment
/// has none. Throws Error and std::runtime_error naming the file.
void write_submission(const std::filesystem::path& runs, const Submission& submission,
                      const WorkerCommand& worker, int threads);

/// The last submission of each attempt of an owner, by the attempt's folder. Throws base::Error if
/// the tasks of one cannot be read.
struct Submitted {
  std::string id;
  std::int64_t task = 0;
};
std::map<std::filesystem::path, Submitted> submissions_of(const std::filesystem::path& runs,
                                                          const std::string& owner);
/// The owner of each submission that there is, by its id.
std::map<std::string, std::string> submission_owners(const std::filesystem::path& runs);
/// Never throws; what cannot be removed stays.
void remove_submission(const std::filesystem::path& runs, const std::string& id) noexcept;

/// job.jsonl of an attempt. Who makes the file has the right to the attempt: a job that runs its
/// worker, or an orchestrator so that none ever will.
struct JobLog {
  bool withdrawn = false;  // an orchestrator was first
  std::string job;         // that began: "12_3"
  std::string host;
  std::optional<int> exit_code;  // as a shell says it: 128 + the number of a signal; absent: no end
};
/// std::nullopt if the file is missing. Throws base::Error if it cannot be read.
std::optional<JobLog> read_job_log(const protocol::TrialDirectory& directory);
/// Sees to it that no job runs the attempt from here on; false where one has begun.
bool withdraw(const protocol::TrialDirectory& directory, double time);

/// The last lines of log.txt, or, where there is none, of what the job printed.
std::string job_last_lines(const protocol::TrialDirectory& directory,
                           const std::filesystem::path& runs, const std::string& submission,
                           std::int64_t task);

}  // namespace petlab::orchestrator
