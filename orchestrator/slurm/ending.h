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
  void cancel(const std::vector<std::string>& numbers) { scancel({}, numbers, {}); }
  /// Cancels the jobs of a submission, or those with these numbers, that have not started.
  void cancel_waiting(const std::string& name);
  void cancel_waiting(const std::vector<std::string>& numbers) {
    scancel({"--state=PENDING"}, numbers, {});
  }

 private:
  void scancel(const std::vector<std::string>& options, const std::vector<std::string>& numbers,
               const std::vector<SlurmJob*>& jobs);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  bool send_scheduled_ = false;
};

}  // namespace petlab::orchestrator
