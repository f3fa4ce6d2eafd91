#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/slurm/ending.h"
#include "orchestrator/slurm/handing_in.h"
#include "orchestrator/slurm/jobs.h"
#include "orchestrator/slurm/text.h"

namespace petlab::orchestrator {

/// What becomes of the jobs: one squeue for all of them, and for few a closer look (scontrol,
/// sacct, their own files).
class SlurmWatching {
 public:
  SlurmWatching(SlurmContext& context, SlurmJobs& jobs, SlurmHandingIn& handing_in,
                SlurmEnding& ending)
      : context_(context),
        jobs_(jobs),
        handing_in_(handing_in),
        ending_(ending),
        timer_(context.loop) {}

  /// Looks so much later, unless a look is coming or nothing is to be seen.
  void wake(SlurmClock::duration in);
  /// Looks for jobs of a submission of which nobody knows whether Slurm took it.
  void look_for(const std::string& submission, const std::vector<SlurmJob*>& jobs);
  void forget(SlurmJob& job);

 private:
  struct Lost {
    std::vector<SlurmJob*> jobs;
    int looks = 0;
    SlurmClock::time_point since;
  };
  bool to_be_looked_at() const;
  void look();
  void looked(base::ChildAnswer& answer, SlurmClock::time_point began);
  void find_lost(const std::map<std::string_view, std::string_view>& by_name,
                 SlurmClock::time_point began);
  void seen(SlurmJob& job, const JobRow& row);
  void seen_waiting(SlurmJob& job, const JobRow& row);
  void not_seen(SlurmJob& job);
  /// `whole`: the record has the exit code too.
  void ended(SlurmJob& job, const JobRecord& record, bool whole);
  /// What Slurm knows of one job; only of those that squeue does not tell enough of.
  void ask(SlurmJob& job);
  void ask_accounting(SlurmJob& job);
  void run_for(SlurmJob& job, std::vector<std::string> words,
               std::function<void(SlurmJob&, const base::ChildAnswer&)> done);
  /// slurmctld knows no such job any more, so it is over; the files say how.
  void forgotten(SlurmJob& job);
  /// While Slurm is silent a script's last line is proof enough.
  void believe_files();
  /// Jobs of this orchestrator that nothing stands for: doubles of a lost answer.
  void end_unknown(const std::vector<JobRow>& rows, SlurmClock::time_point began);
  void note_reason(const JobRow& row);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  SlurmHandingIn& handing_in_;
  SlurmEnding& ending_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Lost> lost_;  // by submission
  std::set<std::string> reasons_;     // that were told
  bool looking_ = false;
  bool waiting_to_look_ = false;
  int asks_ = 0;
};

}  // namespace petlab::orchestrator
