#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

// Decides who is to blame when a worker ends: the trial that it was running, the worker before any
// trial, the user, or the queue. Pure: no clock, no file, no process.

/// Why a run ended a worker.
enum class Verdict {
  none,
  timed_out,      ///< the trial ran longer than --time-limit
  stalled,        ///< it reported nothing for --no-progress-limit
  cancelled,      ///< the user cancelled it
  stopped_early,  ///< the rule of its sweep stopped it
};

/// The reason recorded for an attempt that the user cancelled.
inline constexpr const char* kCancelledByUser = "petlab cancel";

/// The reason recorded for an attempt that the rule of its sweep stopped.
inline constexpr const char* kStoppedEarly = "stop_early";

/// What is known about an attempt that is not over although everything its worker wrote has been
/// read.
struct UnfinishedAttempt {
  bool begun = false;  // as its worker reported
  bool checkpointed = false;
  Verdict verdict = Verdict::none;
  bool in_gang = false;  // its worker was given others together with it, which may be over
};

/// The facts about an ended worker that decide who is to blame.
struct EndedWorkerFacts {
  bool asked_to_stop = false;  // or killed, by this run
  bool any_begun = false;      // of all attempts it was ever given, even if they are over
  std::optional<std::chrono::milliseconds> time_limit;         // as RunOptions
  std::optional<std::chrono::milliseconds> no_progress_limit;  // as RunOptions
  bool any_given = true;  // whether it was ever given an attempt
  bool any_over = false;  // an attempt was over before the worker ended
};

/// What a worker's end means for its slot.
enum class LaunchBlame {
  none,
  failed,      ///< the launch failed: the worker ended by itself before it began an attempt
  taken_away,  ///< no blame: the worker was taken away before it began an attempt
  refused,     ///< no worker can be started in any slot
};

struct Blame {
  /// The ending of each attempt, in the order given. `time` is not set.
  std::vector<results::Ending> endings;
  /// Indices of attempts that had begun together, one of which ended the worker: retry each alone.
  std::vector<std::size_t> to_try_alone;
  /// Index of the attempt that the worker should have begun next but did not; absent if there is
  /// none, or if the end had another cause.
  std::optional<std::size_t> never_begun;
  LaunchBlame launch = LaunchBlame::none;
};

/// The ending of an attempt of a trial that its worker stopped while others continue. `asked`:
/// whether petlab had asked for it. `time` is not set.
results::Ending ending_of_stopped(Verdict verdict, bool asked);

/// `attempts` are in the order in which the worker was given them.
Blame blame_for(const WorkerEnd& end, const EndedWorkerFacts& worker,
                const std::vector<UnfinishedAttempt>& attempts);

/// When this many workers in a row end before they begin a trial, the slot, trial or run that they
/// have in common is stopped.
inline constexpr int kLaunchFailuresThatStop = 3;

/// Numbers of launches that failed in a row, including the last one.
struct LaunchFailures {
  int of_slot = 0;
  int of_run = 0;
  std::int64_t slots = 1;       // maximum number of slots of the run
  bool any_trial_runs = false;  // in any worker of the run
  bool queue = false;           // workers are of jobs, which count wherever they ran, each once
};
struct AfterLaunchFailure {
  bool stop_slot = false;
  bool stop_run = false;
};
/// Decides what to stop after a failed launch. The run has a count of its own, because a slot's
/// count restarts when the slot is released in between.
AfterLaunchFailure after_launch_failure(const LaunchFailures& failures);

}  // namespace petlab::orchestrator
