#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/recovery/adoption.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Handles workers that are jobs of a queue: logs their launches, and adopts the jobs of dead
/// orchestrators, which continue under this one.
class QueuedJobs {
 public:
  QueuedJobs(RunContext& context, RunState& state, JobQueue& queue);

  /// Logs the launches that the queue has reported.
  void log_launches();
  /// Removes waiting jobs from the queue, since no more trials are to begin.
  void withdraw_waiting();
  /// Adopts the jobs of dead orchestrators.
  void adopt_orphans();
  /// Records the ends of jobs whose trials are no longer in the sweep.
  void conclude_strays();
  bool any_strays() const { return !strays_.empty(); }
  /// Removes the locks of adopted orchestrators whose attempts are all over.
  void release_orphans();
  void flush() { queue_.flush(); }
  /// To be called after an error: the jobs continue, and the next run adopts them.
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
  RunState& state_;
  JobQueue& queue_;
  std::list<Orphans> orphans_;  // held until the end
  std::list<Stray> strays_;
  std::set<std::string> launches_;  // slots whose launch() has changed
};

}  // namespace petlab::orchestrator
