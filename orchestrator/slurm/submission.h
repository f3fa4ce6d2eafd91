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

// An orchestrator and its Slurm jobs communicate through these files, on a file system shared by
// all hosts (docs/internals/orchestrator.md, "Slurm jobs").

/// One sbatch: an array of jobs with one attempt each. Its folder `runs/.slurm/ID` contains `tasks`
/// (one attempt folder per line, in task order from 0), `job.sh`, and the jobs' output outside of
/// their workers (`0.out`).
struct Submission {
  std::string id;  // "petlab.OWNER.N"; also the jobs' name
  std::vector<std::filesystem::path> attempts;
};
std::filesystem::path submissions_folder(const std::filesystem::path& runs);
std::filesystem::path submission_folder(const std::filesystem::path& runs, const std::string& id);
std::string submission_id(const std::string& owner, std::int64_t number);

/// Writes the folder, synced; readers see it complete or not at all. `threads` is OMP_NUM_THREADS
/// if the environment does not set it. Throws Error and std::runtime_error naming the file.
void write_submission(const std::filesystem::path& runs, const Submission& submission,
                      const WorkerCommand& worker, int threads);

/// Maps the attempt folders of an owner to their last submissions. Throws base::Error if a tasks
/// file cannot be read.
struct Submitted {
  std::string id;
  std::int64_t task = 0;
};
std::map<std::filesystem::path, Submitted> submissions_of(const std::filesystem::path& runs,
                                                          const std::string& owner);
/// Maps the id of each existing submission to its owner.
std::map<std::string, std::string> submission_owners(const std::filesystem::path& runs);
/// Leaves behind files that cannot be removed; never throws.
void remove_submission(const std::filesystem::path& runs, const std::string& id) noexcept;

/// The contents of an attempt's job.jsonl. The creator of this file owns the attempt: a job that
/// runs its worker, or an orchestrator that prevents any job from running it.
struct JobLog {
  bool withdrawn = false;  // created by an orchestrator
  std::string job;         // the job that began: "12_3"
  std::string host;
  std::optional<int> exit_code;  // as in a shell: 128 + signal if killed; absent: not ended
};
/// std::nullopt if the file is missing. Throws base::Error if it cannot be read.
std::optional<JobLog> read_job_log(const protocol::TrialDirectory& directory);
/// Prevents any job from running the attempt. Returns false if one has already started it. Throws
/// Error if the file cannot be written.
bool withdraw(const protocol::TrialDirectory& directory, double time);

/// The last lines of log.txt, or of the job's own output if log.txt has none.
std::string job_last_lines(const protocol::TrialDirectory& directory,
                           const std::filesystem::path& runs, const std::string& submission,
                           std::int64_t task);

}  // namespace petlab::orchestrator
