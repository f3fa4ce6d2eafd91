#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/recovery/adoption.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// What a run does where workers are jobs of a queue: their launches, and the jobs of dead
/// orchestrators, which go on under this one.
class QueuedJobs {
 public:
  QueuedJobs(RunContext& context, JobQueue& queue, TrialTable& trials, LiveAttempts& attempts,
             SlotTable& slots);

  /// Writes down the launches that the queue has told of.
  void log_launches();
  /// No more trials are to begin: those that wait in the queue are taken out of it.
  void withdraw_waiting();
  /// Takes over what orchestrators that died have left. `cancel_assigned` stops an attempt of this
  /// run.
  void adopt_orphans(const std::function<void(std::size_t trial)>& cancel_assigned);
  /// Records the ends of jobs that nobody wants any more.
  void conclude_strays();
  bool any_strays() const { return !strays_.empty(); }
  /// The adopted whose attempts are all over are no more.
  void release_orphans();
  void flush() { queue_.flush(); }
  /// After an error: the jobs go on, and the next run adopts them.
  void abandon() { strays_.clear(); }

 private:
  // An attempt of a dead orchestrator whose trial the sweep no longer has.
  struct Stray {
    results::AttemptFacts facts;
    std::string slot;
    std::unique_ptr<Worker> worker;
    std::optional<WorkerEnd> end;
  };
  bool settle_without_worker(const results::AttemptFacts& attempt);
  void adopt(const results::AttemptFacts& facts, std::size_t trial);
  void adopt_stray(const results::AttemptFacts& facts);

  RunContext& context_;
  JobQueue& queue_;
  TrialTable& trials_;
  LiveAttempts& attempts_;
  SlotTable& slots_;
  std::list<Orphans> orphans_;  // held until the end
  std::list<Stray> strays_;
  std::set<std::string> launches_;  // slots whose launch() has changed
};

}  // namespace petlab::orchestrator
