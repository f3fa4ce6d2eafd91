#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launching/launcher.h"

namespace petlab::orchestrator {

// Pure functions that parse the output of Slurm's programs. Tested with Slurm 22.05.

/// Summarizes the many job states of Slurm.
enum class JobPhase {
  waiting,  ///< in the queue, also again after a requeue
  running,  ///< also while completing, and in any unknown state
  paused,   ///< suspended; its run time does not advance
  ended,    ///< no longer running
};
/// Parses a state as printed by squeue, scontrol and sacct: "PENDING", "CANCELLED by 0",
/// "CANCELLED+".
JobPhase job_phase(std::string_view state);

/// A line of squeue with kSqueueFormat.
struct JobRow {
  std::string job;                           // "12_3" for a task of an array, otherwise "12"
  std::string state;                         // "RUNNING"
  std::string host;                          // empty if not assigned yet
  std::string reason;                        // why it is pending: "Resources"
  std::optional<std::chrono::seconds> left;  // until its time limit; absent: unknown, or no limit
  std::string name;
  bool operator==(const JobRow&) const = default;
};
inline constexpr const char* kSqueueFormat = "%i|%T|%N|%r|%L|%j";
/// Splits a line that several tasks share ("12_[4-6,9%2]") into a row each. Skips lines that cannot
/// be petlab's jobs: a part of a heterogeneous job ("12+0"), the rest of a name with a line break.
/// Throws Error naming a line if there are lines but no row.
std::vector<JobRow> parse_squeue(std::string_view text);

/// Parses the job number printed by `sbatch --parsable`: "12" from "12" or "12;cluster". Throws
/// Error for anything else.
std::string parse_submission(std::string_view text);

/// Why a Slurm command failed.
enum class Refusal {
  limit,    ///< too many jobs for now; retry later with fewer
  silence,  ///< Slurm did not answer; the command may have taken effect
  refused,  ///< rejected permanently
};
Refusal refusal_from(std::string_view error_output);

/// True if scontrol reports that the job does not exist, or no longer does.
bool is_unknown_job(std::string_view output);

/// The limits in `scontrol show config`. Absent ones keep the defaults below.
struct SlurmLimits {
  std::int64_t max_array_size = 1001;  // highest task number + 1; 0 if arrays are disabled
  std::int64_t max_job_count = 10000;  // maximum number of jobs in Slurm, of all users
  std::string version;
  bool operator==(const SlurmLimits&) const = default;
};
/// Throws Error if a limit is not a number.
SlurmLimits parse_config(std::string_view text);

/// How a job ended, as reported by `scontrol -o show job` or sacct.
struct JobRecord {
  std::string state;
  int exit_code = 0;
  int signal = 0;
  bool operator==(const JobRecord&) const = default;
};
/// std::nullopt if the text has no JobState, or an exit code that is not CODE:SIGNAL.
std::optional<JobRecord> parse_show_job(std::string_view text);
/// Reads the output of `sacct -n -P -X -o JobID,State,ExitCode`. std::nullopt if it has no line of
/// the job whose exit code is CODE:SIGNAL.
std::optional<JobRecord> parse_sacct(std::string_view text, std::string_view job);

/// Translates the end of a job into the end of its worker.
WorkerEnd worker_end(const std::string& job, const JobRecord& record);

/// Parses a time that squeue prints: "1:05", "2:00:05", "3-02:00:05". std::nullopt for anything
/// else
/// ("UNLIMITED", "INVALID").
std::optional<std::chrono::seconds> parse_time(std::string_view text);

/// True if sbatch accepts the text as --time: "2-12:00:00", "90:00", "45" (minutes).
bool is_slurm_time(std::string_view text);

}  // namespace petlab::orchestrator
