#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

// Who is to blame where a worker ends: the trial that it was at, the worker before any trial, the
// user, the queue. Pure: no clock, no file, no process.

/// Why a run ends a worker itself.
enum class Verdict {
  none,
  timed_out,  ///< the trial ran longer than --time-limit
  stalled,    ///< it reported nothing for --no-progress-limit
  cancelled,  ///< the user took it out
};

/// Why an attempt ended that the user took out.
inline constexpr const char* kCancelledByUser = "petlab cancel";

/// What is known of an attempt that is not over when all is read that its worker wrote.
struct UnfinishedAttempt {
  bool begun = false;  // its worker said so
  bool checkpointed = false;
  Verdict verdict = Verdict::none;
};

/// A worker that has ended, in what decides who is to blame.
struct EndedWorkerFacts {
  bool asked_to_stop = false;  // by this run, or killed by it
  bool any_begun = false;      // of all that it was ever given, also those that are over
  std::optional<std::chrono::milliseconds> time_limit;         // as RunOptions
  std::optional<std::chrono::milliseconds> no_progress_limit;  // as RunOptions
};

/// What a worker's end says of its slot.
enum class LaunchBlame {
  none,
  failed,      ///< the launch: it ended before it began anything, by itself
  taken_away,  ///< nothing: it was taken away before it began anything
  refused,     ///< everything: no worker can be had
};

struct Blame {
  /// Of each attempt, in the order given; without `time`.
  std::vector<results::Ending> endings;
  /// Attempts that were begun together, one of which ended the worker: each is to be tried alone.
  std::vector<std::size_t> to_try_alone;
  /// The attempt that its worker was to begin next and did not live to; absent: none, or the end
  /// had another cause.
  std::optional<std::size_t> never_begun;
  LaunchBlame launch = LaunchBlame::none;
};

/// `attempts` are in the order in which the worker was given them.
Blame blame_for(const WorkerEnd& end, const EndedWorkerFacts& worker,
                const std::vector<UnfinishedAttempt>& attempts);

/// Workers in a row that ended before they began a trial stop what they have in common.
inline constexpr int kLaunchFailuresThatStop = 3;

/// Launches that have failed in a row, the last one included.
struct LaunchFailures {
  int of_slot = 0;
  int of_run = 0;
  std::int64_t slots = 1;       // that the run may have
  bool any_trial_runs = false;  // under some worker of the run
  bool queue = false;           // jobs have one cause, wherever they ran
};
struct AfterLaunchFailure {
  bool stop_slot = false;
  bool stop_run = false;
};
/// A slot that is given back between two launches begins to count anew, so the run counts too.
AfterLaunchFailure after_launch_failure(const LaunchFailures& failures);

}  // namespace petlab::orchestrator
