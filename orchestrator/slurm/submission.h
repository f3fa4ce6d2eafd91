#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/launching/worker_command.h"

namespace petlab::orchestrator {

// An orchestrator and its Slurm jobs communicate through these files, on a file system shared by
// all hosts (docs/internals/orchestrator.md, "Slurm jobs").

/// One sbatch: an array of jobs. Each has one task, that is one worker, or `tasks_of_job` of them,
/// the last job perhaps fewer. Its folder `runs/.slurm/ID` contains `job.sh`, `tasks` (their number
/// and that of a job, written last), `number` (of the array in Slurm, once sbatch has answered,
/// with `;CLUSTER` if one was chosen), and the files of each task.
struct Submission {
  std::string id;  // "petlab.OWNER.N"; also the jobs' name
  std::int64_t tasks = 1;
  std::int64_t tasks_of_job = 1;
  std::int64_t jobs() const { return (tasks + tasks_of_job - 1) / tasks_of_job; }
};
std::filesystem::path submissions_folder(const std::filesystem::path& runs);
std::filesystem::path submission_folder(const std::filesystem::path& runs, const std::string& id);
std::string submission_id(const std::string& owner, std::int64_t number);

/// What the jobs of a submission run.
struct JobScript {
  WorkerCommand worker;
  int threads = 1;   // of each worker; OMP_NUM_THREADS if the environment does not set it
  std::string gpus;  // of each worker of several in a job, as in srun --gres=gpu:…; empty: none
  bool one_attempt = false;        // `WORKER DIR` for one attempt; else `WORKER -`
  std::chrono::seconds idle;       // the job ends after this time without an attempt
  std::vector<std::string> setup;  // shell commands, run before the worker in its environment
};
/// Writes the folder, synced; readers see it complete or not at all. Throws Error and
/// std::runtime_error naming the file.
void write_submission(const std::filesystem::path& runs, const Submission& submission,
                      const JobScript& script);
/// Records the array's number in Slurm. Throws as write_submission().
void write_number(const std::filesystem::path& runs, const std::string& id,
                  const std::string& number);

/// The files of one task of a submission.
struct TaskFiles {
  TaskFiles(const std::filesystem::path& runs, const std::string& id, std::int64_t task);
  std::filesystem::path record;  // K.jsonl: see JobLog
  std::filesystem::path inbox;   // K.inbox: lines of attempts (inbox_line()); `end` closes it
  std::filesystem::path output;  // K.out: what the job prints outside of its attempts
  std::filesystem::path over;    // K.over: empty; the record has the end of the worker
};

/// The contents of K.jsonl. The creator of this file owns the task: a job that runs its worker, or
/// an orchestrator that prevents any job from running it.
struct JobLog {
  bool withdrawn = false;  // created by an orchestrator
  std::string job;         // the job that began: "12_3"
  std::string step;        // the worker's step in a job with several: "2"
  std::string host;
  bool idle = false;             // it ended itself, because it got no attempt for a while
  std::optional<int> exit_code;  // as in a shell: 128 + signal if killed; absent: not ended
  bool signalled = false;        // before its end: the queue may know why
};
/// std::nullopt if the file is missing. Throws base::Error if it cannot be read.
std::optional<JobLog> read_job_log(const std::filesystem::path& record);
/// Prevents any job from running the task. Returns false if one has already begun it. Throws Error
/// if the file cannot be written.
bool withdraw(const std::filesystem::path& record, double time);

/// The line of an inbox that gives a worker an attempt, or several to train together: their
/// folders, separated by tabs, and after several a last tab and a dot, without which the line is
/// torn.
std::string inbox_line(const std::vector<std::filesystem::path>& attempt_folders);

/// Appends a line to an inbox, synced. Only one process may do so at a time. Throws Error.
void append_to_inbox(const std::filesystem::path& inbox, const std::string& line);
inline constexpr const char* kInboxEnd = "end";

/// All tasks of an owner's submissions, in their order, with what the inbox contains. Throws
/// base::Error if a file cannot be read.
std::vector<LeftJob> tasks_of(const std::filesystem::path& runs, const std::string& owner);
/// Maps the id of each existing submission to its owner.
std::map<std::string, std::string> submission_owners(const std::filesystem::path& runs);
/// A job of a removed submission ends once its worker has nothing left. Leaves behind files that
/// cannot be removed; never throws.
void remove_submission(const std::filesystem::path& runs, const std::string& id) noexcept;

/// The last lines of an attempt's log.txt, or of the job's own output if the log has none.
std::string job_last_lines(const std::filesystem::path& log, const std::filesystem::path& output);

}  // namespace petlab::orchestrator
