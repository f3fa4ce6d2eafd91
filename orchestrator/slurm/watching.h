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

/// Follows submitted jobs: polls all of them with one squeue, and queries a few separately
/// (scontrol, sacct, their files).
class SlurmWatching {
 public:
  SlurmWatching(SlurmContext& context, SlurmJobs& jobs, SlurmHandingIn& handing_in,
                SlurmEnding& ending)
      : context_(context),
        jobs_(jobs),
        handing_in_(handing_in),
        ending_(ending),
        timer_(context.loop),
        records_timer_(context.loop) {}

  /// Schedules a poll after `in`, unless one is scheduled or running, or there are no jobs to
  /// watch.
  void wake(SlurmClock::duration in);
  /// Looks for the jobs of a submission that Slurm may or may not have accepted.
  void find_submission(const std::string& submission, const std::vector<SlurmJob*>& jobs);
  void forget(SlurmJob& job);

 private:
  struct Lost {
    std::vector<SlurmJob*> jobs;
    int polls = 0;
    SlurmClock::time_point since;
  };
  void look_soon();
  /// Looks for jobs that have begun, and for closed ones that have ended, by their records. Slurm's
  /// answers may come much later.
  void look_at_records();
  bool has_jobs_to_poll() const;
  void poll();
  void read_queue(base::ChildAnswer& answer, SlurmClock::time_point began);
  void find_lost(const std::map<std::string_view, std::string_view>& by_name,
                 SlurmClock::time_point began);
  void seen(SlurmJob& job, const JobRow& row, SlurmClock::time_point began);
  void seen_waiting(SlurmJob& job, const JobRow& row);
  void not_seen(SlurmJob& job);
  /// `whole`: the record includes the exit code.
  void ended(SlurmJob& job, const JobRecord& record, bool whole);
  /// Queries a single job whose state squeue does not settle.
  void query(SlurmJob& job);
  void query_accounting(SlurmJob& job);
  void run_for(SlurmJob& job, std::vector<std::string> words,
               std::function<void(SlurmJob&, const base::ChildAnswer&)> done);
  /// Finishes a job that slurmctld no longer lists. The attempt's files show how it ended.
  void finish_unlisted(SlurmJob& job);
  /// While Slurm does not answer, the last line of a job's record is sufficient proof of an end.
  void finish_from_files();
  /// Cancels jobs of this orchestrator that no worker uses: duplicates after a lost answer.
  void cancel_duplicates(const std::vector<JobRow>& rows, SlurmClock::time_point began);
  void note_reason(const JobRow& row);

  SlurmContext& context_;
  SlurmJobs& jobs_;
  SlurmHandingIn& handing_in_;
  SlurmEnding& ending_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer records_timer_;
  std::map<std::string, Lost> lost_;  // by submission
  std::set<std::string> reasons_;     // already noted
  bool polling_ = false;
  bool poll_scheduled_ = false;
  bool look_scheduled_ = false;
  int queries_ = 0;
};

}  // namespace petlab::orchestrator
