#pragma once

#include <string>
#include <vector>

#include "orchestrator/slurm/jobs.h"

namespace petlab::orchestrator {

/// Tells Slurm which jobs are to stop, or to end at once (scancel).
class SlurmEnding {
 public:
  SlurmEnding(SlurmContext& context, SlurmJobs& jobs) : context_(context), jobs_(jobs) {}

  /// For all jobs whose requests were not sent, soon.
  void tell_soon();
  /// Now; what is not known to have arrived is said again.
  void tell();
  /// Jobs of this orchestrator that nothing stands for: doubles of a lost answer.
  void cancel(const std::vector<std::string>& numbers) { scancel({}, numbers, {}); }

 private:
  void scancel(const std::vector<std::string>& options, const std::vector<std::string>& numbers,
               const std::vector<SlurmJob*>& jobs);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  bool telling_ = false;
};

}  // namespace petlab::orchestrator
