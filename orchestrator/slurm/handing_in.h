#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/slurm/jobs.h"
#include "orchestrator/slurm/submission.h"
#include "orchestrator/slurm/text.h"

namespace petlab::orchestrator {

/// Submits jobs (sbatch) as arrays. They grow while Slurm accepts them and shrink when it rejects
/// them.
class SlurmHandingIn {
 public:
  SlurmHandingIn(SlurmContext& context, SlurmJobs& jobs)
      : context_(context), jobs_(jobs), timer_(context.loop) {}

  void enqueue(SlurmJob& job) { queue_.push_back(&job); }
  /// Removes a job from the queue. The job is over.
  void withdraw_queued(SlurmJob& job);
  void forget(SlurmJob& job);
  /// Submits the queued jobs, unless a command is running or a retry must wait.
  void flush();
  /// "12_3" for job 3 of array 12; "12" if Slurm has no arrays.
  std::string number_in(const std::string& array, std::int64_t task) const;

  // Set by the launcher. `watch` starts polling for submitted jobs. `lost` looks for a submission
  // that Slurm may or may not have accepted.
  std::function<void()> watch;
  std::function<void(const std::string& submission, const std::vector<SlurmJob*>& jobs)> lost;

 private:
  void ask_limits();
  std::int64_t most_jobs() const;
  std::vector<std::string> sbatch_words(const Submission& submission,
                                        const std::string& gpus) const;
  /// The next submission: its workers, and the GPUs that the trials of each need.
  struct Next {
    std::int64_t gpus = 1;
    std::int64_t tasks = 0;
  };
  Next next() const;
  std::int64_t workers_of_job(std::int64_t gpus) const;
  void submit();
  void submitted(const std::string& id, base::ChildAnswer answer);
  void accepted(const std::vector<SlurmJob*>& jobs, const std::string& number);
  void refused(const std::vector<SlurmJob*>& jobs, const std::string& errors);
  void try_again_in(SlurmClock::duration pause);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  boost::asio::steady_timer timer_;
  std::deque<SlurmJob*> queue_;
  std::vector<SlurmJob*> in_sbatch_;
  std::optional<SlurmLimits> limits_;
  std::int64_t most_jobs_ = 1;    // of the next submission
  std::int64_t submissions_ = 0;  // submissions so far
  SlurmClock::time_point not_before_;
  int refusals_ = 0;  // in a row
  bool any_accepted_ = false;
  std::string refused_text_;
  bool busy_ = false;  // a command is running
};

}  // namespace petlab::orchestrator
