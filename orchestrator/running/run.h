#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "orchestrator/launching/code_capture.h"
#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/code_changes.h"
#include "orchestrator/planning/gang_rule.h"
#include "orchestrator/running/event_loop.h"
#include "results/store.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"
#include "sweeps/trial_state.h"

namespace petlab::orchestrator {

/// The settings of a run.
struct RunOptions {
  std::filesystem::path runs;  // absolute; folder of the trials' directories
  std::string owner;           // this orchestrator's name; its lock is held by the caller
  std::int64_t slots = 1;      // maximum number of parallel workers
  std::int64_t threads = 1;    // of each worker, for trial.json
  /// Attempts that may crash or stall, after the first one. Absent: the limit of the trial's last
  /// attempt, or results::kUsualRetries if it has none.
  std::optional<std::int64_t> retries;
  /// Wait before the first retry; doubled with each further one.
  std::chrono::milliseconds retry_delay = std::chrono::seconds(1);
  /// An attempt that runs longer is stopped and fails; absent: no limit.
  std::optional<std::chrono::milliseconds> time_limit;
  /// An attempt that reports nothing for this long is killed and retried; absent: no limit.
  std::optional<std::chrono::milliseconds> no_progress_limit;
  /// A worker that was asked to end is killed after this.
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /// GPU memory in MiB that a trial is expected to need if none was measured. Absent: the estimate
  /// of sweeps/memory.h if it is for this worker, otherwise a whole GPU.
  std::optional<std::int64_t> trial_memory_mib;
  bool has_memory_formula = false;   // the worker is petlab-trainer
  std::int64_t most_in_gang = 1;     // trials that a worker gets together
  GangRule gang_rule;                // which trials these can be
  bool workers_stop_trials = false;  // WorkerDescription::stops_trials
  bool rerun_stale = false;
  bool rerun_failed = false;
  bool rerun_all = false;                        // all that have a result or failed
  bool resume_stopped = false;                   // those that a rule of the sweep stopped
  std::unordered_set<std::string> rerun_trials;  // ids: rerun these, even if cancelled
  /// Ids of the sweep's trials that were not requested (--only). This run ignores them, and leaves
  /// jobs that another run submitted for them in the queue.
  std::unordered_set<std::string> left_out;
  std::string worker_numerics;  // --describe; empty: not known
  std::string petlab_version;   // its commit, recorded with each attempt
  /// Provenance of petlab and this machine, recorded with each attempt: a JSON object as text, may
  /// be empty (docs/reference/database.md).
  std::string provenance;
  /// Captures what workers run; nullptr: nothing is captured.
  std::shared_ptr<CodeCapture> code;
  KnownCode code_at_start;   // what it captured first, and what the worker said about itself
  bool strict_code = false;  // end the run when the code changes
  bool nice = false;         // give way to all other runs of this host (planning/fair_turns.h)
  /// With jobs of a queue: end once they have all trials. The next run adopts them.
  bool detach = false;

  /// Reruns and resumes nothing from now on, because that was done.
  void forget_reruns() {
    rerun_stale = rerun_failed = rerun_all = resume_stopped = false;
    rerun_trials.clear();
  }
};

/// What a run is to do. The references must outlive it.
struct RunInput {
  const sweeps::Sweep& sweep;  // recorded in the store
  const sweeps::Locations& locations;
  RunOptions options;
};

/// True if the user asked to rerun or retry a trial in this state.
bool is_rerun(const RunOptions& options, const std::string& trial_id, sweeps::TrialState state);

/// A running trial, as shown in the live view.
struct RunningTrial {
  std::string trial_id;
  std::int64_t attempt = 0;
  std::string sweep;
  std::string variant;  // its variants in the sweep, joined by ", "
  std::string slot;     // "cpu-3", "gpu-3.1"
  std::string host;     // empty: not known yet
  std::string doing;    // queued, starting, loading, training, suspended, stopping
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;
  std::optional<double> best;               // BestMetric
  std::optional<double> device_memory_mib;  // the highest value reported
  double seconds = 0;                       // since it began
  std::optional<double> seconds_left;
};

/// The progress of a run, in numbers of trials.
struct RunStatus {
  std::int64_t total = 0;
  std::int64_t done = 0;  // done, cached and stale ones included
  std::int64_t cached = 0;
  std::int64_t stale = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
  std::int64_t stopped = 0;    // early, by a rule of the sweep
  std::int64_t running = 0;    // given to a worker of this run
  std::int64_t waiting = 0;    // for a slot, a retry's delay, or claimed for a busy worker
  std::int64_t elsewhere = 0;  // claimed by another orchestrator
  std::int64_t finished_here = 0;
  std::vector<RunningTrial> trials;  // the running ones

  /// Trials with nothing to do.
  std::int64_t over() const { return done + failed + cancelled + stopped; }
};

/// Receives the events of a run, on the run's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// Called a few times a second at most, and at the end.
  virtual void status(const RunStatus& status) = 0;
  /// A trial of this run is over, for now or for good. `reason` is empty if it is done.
  /// `last_lines` are those of the worker's log; they may be empty.
  virtual void trial_over(const std::string& trial_id, sweeps::TrialState state,
                          const std::string& reason, const std::string& last_lines) = 0;
  /// A trial's state was read from the database, or has changed there.
  virtual void settled(const std::string& /*trial_id*/) {}
  /// One line for the user.
  virtual void note(const std::string& line) = 0;
  /// The terminal was resized.
  virtual void resized() {}
};

struct RunResult {
  RunStatus status;
  bool interrupted = false;  // the user asked to stop
  std::string problem;  // why work is left, if the user did not ask to stop; empty: none is left
  bool points_missing = false;  // a search by TPE has more points (running/search_rounds.h)
  bool detached = false;        // jobs have the trials that are left
};

/// 0: every trial is done, was cancelled or stopped early, or jobs have it after detaching; 3:
/// stopped by the user with work left; 1: otherwise.
int exit_code(const RunResult& result);

/// Runs the trials of a sweep until all are over, in one loop that claims, starts, reads, retries
/// and records. It has one thread, and waits only in `loop`. Several runs may share a database. Its
/// parts are TrialTable (what to run), Claims (how trials get to workers), Outcomes (how attempts
/// end), WorkerSlot and LiveAttempt (the state of each), Shares and QueuedJobs (for some launchers
/// only), Neighbours, DeviceGuard, OtherRuns and Limits.
class Run {
 public:
  /// All references must outlive it.
  Run(EventLoop& loop, results::Store& store, Launcher& launcher, RunInput input,
      RunObserver& observer);
  ~Run();

  /// Throws results::Error if the database cannot be written, and Error and std::runtime_error for
  /// locks, files and processes. Before that, local workers have been asked to checkpoint and are
  /// gone; jobs in a queue keep running.
  RunResult execute();

  /// To be called from the loop. The first call starts no new trials, but finishes the running
  /// ones. The second lets these write a checkpoint and stop. The third kills them.
  void interrupt();
  /// Like the first interrupt, even if called repeatedly (`petlab stop`).
  void finish();
  /// Like the second interrupt, even if called repeatedly (SIGTERM, SIGHUP): systemd, Slurm and
  /// `timeout` signal a process and then its group. A later interrupt() kills the workers.
  void terminate();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace petlab::orchestrator
