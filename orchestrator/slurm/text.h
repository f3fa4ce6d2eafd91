#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launching/launcher.h"

namespace petlab::orchestrator {

// What Slurm's programs print, read; pure functions. Tried with Slurm 22.05.

/// Where a job is, of the many states that Slurm tells apart.
enum class JobPhase {
  waiting,  ///< in the queue, also once more after it ran
  running,  ///< also on its way to its end, and any state that is not known here
  paused,   ///< suspended: no time runs
  ended,    ///< it runs no more
};
/// Of a state as squeue, scontrol and sacct write it: "PENDING", "CANCELLED by 0", "CANCELLED+".
JobPhase job_phase(std::string_view state);

/// A line of squeue with kSqueueFormat.
struct JobRow {
  std::string job;                          // "12_3" a task of an array, "12" any other
  std::string state;                        // "RUNNING"
  std::string host;                         // empty: none yet
  std::string reason;                       // why it waits: "Resources"
  std::optional<std::chrono::seconds> ran;  // so far, suspensions left out; absent: not known
  std::string name;
  bool operator==(const JobRow&) const = default;
};
inline constexpr const char* kSqueueFormat = "%i|%T|%N|%r|%M|%j";
/// Tasks that share a line ("12_[4-6,9%2]") become a row each. What no job of petlab can be is left
/// out: a part of a heterogeneous job ("12+0"), the rest of a name with a line break. Throws Error
/// naming a line where there are lines and none is a row.
std::vector<JobRow> parse_squeue(std::string_view text);

/// "12" of `sbatch --parsable` ("12" or "12;cluster"). Throws Error for anything else.
std::string parse_submission(std::string_view text);

/// Why a command of Slurm did not do what it was asked.
enum class Refusal {
  limit,    ///< too many jobs for now: fewer, later
  silence,  ///< Slurm did not answer: what was asked may have been done or not
  refused,  ///< it will not be done, however often it is asked
};
Refusal refusal_from(std::string_view error_output);

/// True where scontrol says that it knows no such job, or no longer.
bool is_unknown_job(std::string_view output);

/// What `scontrol show config` says of limits; what is absent keeps its value here.
struct SlurmLimits {
  std::int64_t max_array_size = 1001;  // highest task number + 1; 0: no arrays
  std::int64_t max_job_count = 10000;  // jobs that Slurm knows at once, all users
  std::string version;
  bool operator==(const SlurmLimits&) const = default;
};
/// Throws Error where a limit is no number.
SlurmLimits parse_config(std::string_view text);

/// How a job ended, as `scontrol -o show job` or sacct says.
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

/// What the end of a job means for its worker.
WorkerEnd worker_end(const std::string& job, const JobRecord& record);

/// "1:05", "2:00:05", "3-02:00:05": how long a job ran, as squeue writes it; std::nullopt for
/// anything else ("INVALID").
std::optional<std::chrono::seconds> parse_run_time(std::string_view text);

/// "2-12:00:00", "90:00", "45" (minutes): what sbatch takes as --time.
bool is_slurm_time(std::string_view text);

}  // namespace petlab::orchestrator
