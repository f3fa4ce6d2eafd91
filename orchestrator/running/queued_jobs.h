#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/recovery/adoption.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

/// Handles workers that are jobs of a queue: adopts the jobs of dead orchestrators, which continue
/// under this one.
class QueuedJobs {
 public:
  QueuedJobs(RunContext& context, RunState& state, JobQueue& queue)
      : context_(context), state_(state), queue_(queue) {}

  /// Adopts the jobs of dead orchestrators.
  void adopt_orphans();
  /// Records the ends of jobs with trials that are no longer in the sweep.
  void conclude_strays();
  bool any_strays() const { return !strays_.empty(); }
  /// Removes the locks of adopted orchestrators whose attempts are all over.
  void release_orphans();
  void flush() { queue_.flush(); }
  /// To be called after an error: the jobs continue, and the next run adopts them.
  void abandon() { strays_.clear(); }

 private:
  // An open attempt of a dead orchestrator.
  struct OpenAttempt {
    results::AttemptFacts facts;
    bool wanted = false;  // by this run
  };
  using OpenAttempts = std::map<std::filesystem::path, OpenAttempt>;  // by folder
  // A job with a trial that the sweep no longer has.
  struct Stray {
    std::vector<results::AttemptFacts> attempts;
    std::string slot;
    std::unique_ptr<Worker> worker;
    std::optional<WorkerEnd> end;
  };
  protocol::TrialDirectory directory_of(const results::AttemptFacts& facts) const;
  void replan(const results::AttemptFacts& facts);
  void record_launches(const std::vector<LeftJob>& left,
                       std::vector<results::AttemptFacts>& attempts);
  bool settle_without_worker(const results::AttemptFacts& attempt);
  void adopt(LeftJob& job, OpenAttempts& open);
  void adopt(const LeftJob& job, const std::string& name,
             const std::vector<results::AttemptFacts>& attempts);
  void adopt_stray(const LeftJob& job, const std::string& name,
                   std::vector<results::AttemptFacts> attempts);
  void remove_left();

  RunContext& context_;
  RunState& state_;
  JobQueue& queue_;
  std::list<Orphans> orphans_;  // held until the end
  std::list<Stray> strays_;
  bool removed_left_ = false;
  std::set<std::pair<std::string, std::int64_t>> jobs_adopted_;  // by submission and number there
};

}  // namespace petlab::orchestrator
