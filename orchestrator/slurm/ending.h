#pragma once

#include <string>
#include <vector>

#include "orchestrator/slurm/jobs.h"

namespace petlab::orchestrator {

/// Asks Slurm to stop or kill jobs (scancel).
class SlurmEnding {
 public:
  SlurmEnding(SlurmContext& context, SlurmJobs& jobs) : context_(context), jobs_(jobs) {}

  /// Schedules sending of all unsent requests.
  void send_soon();
  /// Sends them now. Requests that Slurm has not confirmed are sent again.
  void send();
  /// Cancels jobs of this orchestrator that no worker uses: duplicates after a lost answer.
  void cancel(const std::vector<std::string>& numbers) { scancel({}, {numbers, {}}); }
  /// Cancels the jobs of a submission that have not started. Waits for the answer, unless an
  /// earlier one took too long: a run that ends kills its commands.
  void cancel_waiting(const std::string& name);
  /// Cancels those of the jobs with these numbers that have not started.
  void cancel_waiting(const std::vector<std::string>& numbers) {
    scancel({"--state=PENDING"}, {numbers, {}});
  }

 private:
  /// What one call of scancel may be about.
  struct Requests {
    std::vector<std::string> numbers;  // of jobs or steps
    std::vector<SlurmJobs::Key> jobs;  // that asked; sent again without an answer
  };
  void scancel(const std::vector<std::string>& options, const Requests& requests);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  bool send_scheduled_ = false;
  bool silent_ = false;  // Slurm did not answer a call of cancel_waiting()
};

}  // namespace petlab::orchestrator
