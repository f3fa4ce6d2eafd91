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

#include "orchestrator/launching/launcher.h"
#include "orchestrator/running/event_loop.h"
#include "results/store.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"
#include "sweeps/trial_state.h"

namespace petlab::orchestrator {

/// How a run goes about its work.
struct RunOptions {
  std::filesystem::path runs;  // absolute; folder of the trials' directories
  std::string owner;           // this orchestrator's name; its lock is held by the caller
  std::int64_t slots = 1;      // workers at once, at most
  std::int64_t threads = 1;    // of each worker, for trial.json
  /// Attempts that may crash or stall beyond the first.
  /// Absent: as the trial's last attempt was begun with, else results::kUsualRetries.
  std::optional<std::int64_t> retries;
  /// Wait before the first retry; doubled with each further one.
  std::chrono::milliseconds retry_delay = std::chrono::seconds(1);
  /// An attempt that runs longer is stopped and has failed; absent: no limit.
  std::optional<std::chrono::milliseconds> time_limit;
  /// An attempt that reports nothing for this long is killed and retried; absent: no limit.
  std::optional<std::chrono::milliseconds> no_progress_limit;
  /// A worker that was asked to end is killed after this.
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /// What a trial is expected to need of a GPU where nothing was measured; absent: what the formula
  /// says (sweeps/memory.h) where that is the worker's, else all of a GPU.
  std::optional<std::int64_t> trial_memory_mib;
  bool has_memory_formula = false;  // the worker is petlab-trainer
  bool rerun_stale = false;
  bool rerun_failed = false;
  bool rerun_all = false;                        // whatever has a result or has failed
  std::unordered_set<std::string> rerun_trials;  // ids: likewise, and what was cancelled
  /// Ids of the sweep's trials that this run was not asked for: they are none of its own, and jobs
  /// of theirs that another left in a queue stay there.
  std::unordered_set<std::string> left_out;
  std::string worker_numerics;  // --describe; empty: not known
  std::string petlab_version;   // its commit, which attempts are recorded with
  /// JSON object as text, may be empty: what of petlab and this machine each attempt is recorded
  /// with (docs/reference/database.md).
  std::string provenance;
};

/// Whether a trial in that state is to be made again, or tried again, because the user asked for
/// it.
bool is_rerun(const RunOptions& options, const std::string& trial_id, sweeps::TrialState state);

/// A trial that runs now.
struct RunningTrial {
  std::string trial_id;
  std::int64_t attempt = 0;
  std::string sweep;
  std::string variant;  // under which the sweep asks for it, several joined by ", "
  std::string slot;     // "cpu-3", "gpu-3.1"
  std::string host;     // empty: not known yet
  std::string doing;    // queued, starting, loading, training, suspended, stopping
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;
  std::optional<double> best;               // BestMetric
  std::optional<double> device_memory_mib;  // the most so far, as the worker says
  double seconds = 0;                       // since its worker has begun it
  std::optional<double> seconds_left;
};

/// Where a run is.
struct RunStatus {
  std::int64_t total = 0;
  std::int64_t done = 0;  // done, cached and stale ones included
  std::int64_t cached = 0;
  std::int64_t stale = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
  std::int64_t running = 0;    // given to a worker of this run
  std::int64_t waiting = 0;    // for a slot, a retry's delay, or claimed for a busy worker
  std::int64_t elsewhere = 0;  // another orchestrator has them
  std::int64_t finished_here = 0;
  std::vector<RunningTrial> trials;  // running
};

/// What a run tells while it goes on; called on its thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// At most some times a second, and at each change of a trial's state.
  virtual void status(const RunStatus& status) = 0;
  /// A trial of this run is over, for now or for good; `reason` is empty where it is done,
  /// `last_lines` (of the worker's log) where it has none.
  virtual void trial_over(const std::string& trial_id, sweeps::TrialState state,
                          const std::string& reason, const std::string& last_lines) = 0;
  /// A trial's state was read from the database, or has changed there.
  virtual void settled(const std::string& /*trial_id*/) {}
  /// One line that a user should see.
  virtual void note(const std::string& line) = 0;
  /// The terminal has another size now.
  virtual void resized() {}
};

struct RunResult {
  RunStatus status;
  bool interrupted = false;  // the user asked to stop
  std::string problem;       // why work is left although nobody asked to stop; empty: none is
};

/// 0: every trial is done or was cancelled; 3: stopped by the user with work left; 1: else. Never 0
/// with work left.
int exit_code(const RunResult& result);

/// Runs the trials of a sweep until all are over: the one loop that claims, starts, reads, retries
/// and records. One thread; all waiting is in `loop`. Several may run on one database at once. Its
/// parts: TrialTable (what is to run), Claims (a trial's way to a worker), Outcomes (what comes of
/// it), Slot and LiveAttempt (where each is), Shares and QueuedJobs (what only some launchers
/// have), OtherRuns, Limits.
class Run {
 public:
  /// All references must outlive it. The sweep must be recorded in the store.
  Run(EventLoop& loop, results::Store& store, Launcher& launcher, const sweeps::Sweep& sweep,
      const sweeps::Locations& locations, RunOptions options, RunObserver& observer);
  ~Run();

  /// Throws results::Error where the database cannot be written, Error and std::runtime_error for
  /// locks, files and processes; the workers have been asked to checkpoint and are gone then.
  RunResult execute();

  /// From the loop. The first call: no new trials, the running ones are finished. The second: they
  /// write a checkpoint and stop. The third: they are killed.
  void interrupt();
  /// As the first interrupt, however often it is called (`petlab stop`).
  void finish();
  /// As the second interrupt, however often it is called (SIGTERM, SIGHUP): systemd, Slurm and
  /// `timeout` signal a process and then its group. A later interrupt() kills the workers.
  void terminate();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace petlab::orchestrator
