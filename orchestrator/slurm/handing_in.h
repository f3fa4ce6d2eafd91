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

/// Hands jobs in (sbatch), as arrays that grow while Slurm takes them and shrink where it does not.
class SlurmHandingIn {
 public:
  SlurmHandingIn(SlurmContext& context, SlurmJobs& jobs)
      : context_(context), jobs_(jobs), timer_(context.loop) {}

  void enqueue(SlurmJob& job) { queue_.push_back(&job); }
  /// Takes a job out of the line; it is over, unless its double runs already.
  void withdraw_queued(SlurmJob& job);
  void forget(SlurmJob& job);
  /// Hands in what is in line, where Slurm may be asked now.
  void flush();
  /// "12_3" of array 12.
  std::string number_in(const std::string& array, const SlurmJob& job) const;

  // Set by the launcher: what was handed in is to be looked at; a submission of which nobody knows
  // whether Slurm took it.
  std::function<void()> watch;
  std::function<void(const std::string& submission, const std::vector<SlurmJob*>& jobs)> lost;

 private:
  void ask_limits();
  std::int64_t most_tasks() const;
  std::vector<std::string> sbatch_words(const Submission& submission) const;
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
  std::int64_t tasks_ = 1;  // of the next submission, at most
  std::int64_t made_ = 0;   // submissions
  SlurmClock::time_point not_before_;
  int refusals_ = 0;  // in a row
  bool any_accepted_ = false;
  std::string refused_text_;
  bool busy_ = false;  // a command runs
};

}  // namespace petlab::orchestrator
