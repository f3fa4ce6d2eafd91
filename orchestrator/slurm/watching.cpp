#include "orchestrator/slurm/watching.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/slurm/submission.h"

namespace petlab::orchestrator {
namespace {

// A job is queried separately after this many polls without it, or without the last line of its
// record: a poll may be older than the job, and files reach other hosts with a delay.
constexpr int kPollsBeforeQuery = 2;
constexpr int kMostQueries = 4;
constexpr auto kLookAtRecords = std::chrono::seconds(1);

decltype(WorkerEnd::how) how_of(const SlurmJob& job, const JobLog& log) {
  const int code = *log.exit_code;
  if (code > 128 && code <= 128 + 64) return Killed{code - 128};
  if (code == 0 && log.idle) {
    return TakenAway{fmt::format("Slurm job {} ended because it had no trial", job.launched.job)};
  }
  return Exited{code};
}

}  // namespace

void SlurmWatching::find_submission(const std::string& submission,
                                    const std::vector<SlurmJob*>& jobs) {
  Lost& lost = lost_[submission];
  lost.jobs.insert(lost.jobs.end(), jobs.begin(), jobs.end());
  lost.since = SlurmClock::now();
}

void SlurmWatching::forget(SlurmJob& job) {
  for (auto& [id, lost] : lost_) std::erase(lost.jobs, &job);
}

bool SlurmWatching::has_jobs_to_poll() const {
  return !lost_.empty() ||
         std::any_of(jobs_.all().begin(), jobs_.all().end(),
                     [](const SlurmJob* job) { return job->at() == SlurmJob::At::job; });
}

void SlurmWatching::look_at_records() {
  std::map<std::string, std::vector<SlurmJob*>> followed;  // by submission
  for (SlurmJob* job : jobs_.all()) {
    if (job->at() != SlurmJob::At::job || (job->ran && !job->shares_job)) continue;
    followed[job->submission].push_back(job);
  }
  for (const auto& [id, jobs] : followed) {
    std::set<std::filesystem::path> listed;
    for (const std::filesystem::path& entry :
         base::entries_of(submission_folder(context_.options.runs, id))) {
      listed.insert(entry.filename());
    }
    for (SlurmJob* job : jobs) {
      const TaskFiles files = job->files();
      const bool over = listed.contains(files.over.filename());
      if (job->ran ? !over || job->watched.over : !listed.contains(files.record.filename())) {
        continue;
      }
      const std::optional<JobLog> log = job->record();
      if (!log || log->job != job->launched.job || job->requeued) continue;
      job->begin(log->host);
      if (over && log->exit_code) job->watched.over = SlurmClock::now();
    }
  }
  bool any_closed = false;
  for (SlurmJob* job : std::vector<SlurmJob*>(jobs_.all().begin(), jobs_.all().end())) {
    if (job->at() != SlurmJob::At::job || !job->ran || !job->is_closed()) continue;
    any_closed = true;
    // With another exit code, or after a signal, Slurm may know more.
    const std::optional<JobLog> log = job->record();
    if (log && log->job == job->launched.job && log->exit_code == 0 && !log->signalled &&
        !job->requeued) {
      jobs_.finish(*job, {how_of(*job, *log), ""});
    }
  }
  if (!followed.empty() || any_closed) look_soon();
}

void SlurmWatching::look_soon() {
  if (std::exchange(look_scheduled_, true)) return;
  records_timer_.expires_after(
      std::min<SlurmClock::duration>(kLookAtRecords, context_.options.poll));
  records_timer_.async_wait([this](const boost::system::error_code& error) {
    look_scheduled_ = false;
    if (!error) look_at_records();
  });
}

void SlurmWatching::wake(SlurmClock::duration in) {
  look_soon();
  if (polling_ || poll_scheduled_ || !has_jobs_to_poll()) return;
  poll_scheduled_ = true;
  timer_.expires_after(in);
  timer_.async_wait([this](const boost::system::error_code& error) {
    poll_scheduled_ = false;
    if (!error) poll();
  });
}

void SlurmWatching::poll() {
  if (!has_jobs_to_poll()) return;
  polling_ = true;
  const SlurmClock::time_point began = SlurmClock::now();
  context_.run({"squeue", "--noheader", "--array", "--states=all",
                fmt::format("--user={}", ::geteuid()), "-o", kSqueueFormat},
               kSlurmAnswerLimit, [this, began](base::ChildAnswer answer) {
                 polling_ = false;
                 if (answer.exit_code == 0) {
                   read_queue(answer, began);
                 } else {
                   context_.note_no_answer(answer);
                   finish_from_files();
                 }
                 ending_.send();
                 wake(context_.options.poll);
               });
}

void SlurmWatching::read_queue(base::ChildAnswer& answer, SlurmClock::time_point began) {
  std::vector<JobRow> rows;
  try {
    rows = parse_squeue(answer.output);
  } catch (const Error& error) {
    answer.errors = error.what();
    context_.note_no_answer(answer);
    return;
  }
  context_.note_answer();
  std::map<std::string_view, const JobRow*> by_number;
  std::map<std::string_view, std::string_view> by_name;  // number of the job or its array
  for (const JobRow& row : rows) {
    const std::string_view number = row.job;
    by_number[number] = &row;
    by_name[row.name] = number.substr(0, number.find('_'));
  }
  find_lost(by_name, began);
  // jobs_.finish() changes the set.
  for (SlurmJob* job : std::vector<SlurmJob*>(jobs_.all().begin(), jobs_.all().end())) {
    if (!jobs_.contains(job) || job->at() != SlurmJob::At::job) continue;
    const std::string_view number = job->launched.job;
    auto found = by_number.find(number);
    if (found == by_number.end()) {
      // Tasks cancelled before they started share their array's line.
      found = by_number.find(number.substr(0, number.find('_')));
      if (found != by_number.end() && job_phase(found->second->state) != JobPhase::ended) {
        found = by_number.end();
      }
    }
    if (found != by_number.end()) {
      seen(*job, *found->second, began);
    } else if (began > job->watched.since) {
      not_seen(*job);
    }
  }
  cancel_duplicates(rows, began);
}

void SlurmWatching::find_lost(const std::map<std::string_view, std::string_view>& by_name,
                              SlurmClock::time_point began) {
  for (auto entry = lost_.begin(); entry != lost_.end();) {
    auto& [id, lost] = *entry;
    const auto found = by_name.find(id);
    if (found == by_name.end() && (began <= lost.since || ++lost.polls < kPollsBeforeQuery)) {
      ++entry;
      continue;
    }
    const std::vector<SlurmJob*> jobs = std::exchange(lost.jobs, {});
    const std::string array = found == by_name.end() ? std::string() : std::string(found->second);
    entry = lost_.erase(entry);
    for (SlurmJob* job : jobs) {
      if (!array.empty()) {
        jobs_.becomes_job(*job, handing_in_.number_in(array, job->array_task));
      } else if (!withdraw(job->files().record, wall_clock_seconds())) {
        jobs_.becomes_job(*job, job->record()->job);
      } else {
        // Withdrawn: if Slurm starts the lost job after all, it ends at once.
        job->become(SlurmJob::At::queued);
        handing_in_.enqueue(*job);
        if (job->is_to_end()) handing_in_.withdraw_queued(*job);
      }
    }
  }
}

void SlurmWatching::seen(SlurmJob& job, const JobRow& row, SlurmClock::time_point began) {
  job.watched.missing = 0;
  job.paused = job_phase(row.state) == JobPhase::paused;
  switch (job_phase(row.state)) {
    case JobPhase::waiting:
      // Its record has shown meanwhile that it runs.
      if (job.ran && began <= job.watched.since) return;
      seen_waiting(job, row);
      return;
    case JobPhase::paused:
      job.waiting = true;
      return;
    case JobPhase::running:
      job.waiting = job.shares_job && !job.ran;
      if (row.left) job.ends = SlurmClock::now() + *row.left;
      // A requeued job has no worker. One of several workers begins after its job, and its end
      // counts if that of the job is not its cause.
      if (job.requeued) return;
      if (!job.shares_job) {
        job.begin(row.host);
      } else if (job.watched.over && began > *job.watched.over && row.state != "COMPLETING") {
        ended(job, {"COMPLETED", 0, 0}, true);
      }
      return;
    case JobPhase::ended:
      ended(job, {row.state, 0, 0}, false);
      return;
  }
}

void SlurmWatching::seen_waiting(SlurmJob& job, const JobRow& row) {
  job.waiting = true;
  note_reason(row);
  if (job.requeued || !(job.ran || job.may_have_run)) return;
  job.ran = job.may_have_run = false;
  const std::optional<JobLog> log = job.record();
  if (!log || log->job != job.launched.job) return;
  job.requeued = true;
  job.requested = SlurmJob::Request::kill;
  job.request_sent = false;
}

void SlurmWatching::not_seen(SlurmJob& job) {
  if (job.request_sent && !job.ran) {
    // A task that was cancelled before it started has no line.
    ended(job, {"CANCELLED", 0, 0}, false);
    return;
  }
  if (job.has_written()) job.watched.missing = 0;
  if (++job.watched.missing >= kPollsBeforeQuery) query(job);
}

void SlurmWatching::ended(SlurmJob& job, const JobRecord& record, bool whole) {
  const std::optional<JobLog> log = job.record();
  if (log && !log->job.empty() && log->job != job.launched.job) {
    // The job's duplicate had started first and runs the task.
    jobs_.becomes_job(job, log->job);
    job.may_have_run = true;
    return;
  }
  WorkerEnd end = worker_end(job.launched.job, record);
  if (job.requeued) {
    end.how = TakenAway{fmt::format("Slurm requeued job {}", job.launched.job)};
  }
  const bool began = log && log->job == job.launched.job;
  if (std::holds_alternative<TakenAway>(end.how) && began && !log->exit_code) {
    // On a node that Slurm has lost, the worker may still be training and replacing checkpoints.
    if (job.has_written()) job.watched.unsettled = 0;
    if (++job.watched.unsettled <= kPollsBeforeQuery) return;
  }
  if (std::holds_alternative<Exited>(end.how)) {
    if (log && log->exit_code) {
      end.how = how_of(job, *log);
    } else if (!whole) {
      if (++job.watched.unsettled > kPollsBeforeQuery) query(job);
      return;
    }
  }
  jobs_.finish(job, std::move(end));
}

void SlurmWatching::run_for(SlurmJob& job, std::vector<std::string> words,
                            std::function<void(SlurmJob&, const base::ChildAnswer&)> done) {
  job.watched.queried = true;
  ++queries_;
  context_.run(std::move(words), kSlurmAnswerLimit,
               [this, key = SlurmJobs::key_of(job),
                done = std::move(done)](const base::ChildAnswer& answer) {
                 --queries_;
                 SlurmJob* found = jobs_.find(key);
                 if (found == nullptr) return;
                 found->watched.queried = false;
                 done(*found, answer);
               });
}

void SlurmWatching::query(SlurmJob& job) {
  if (job.watched.queried || queries_ >= kMostQueries) return;
  run_for(job, {"scontrol", "-o", "show", "job", job.launched.job},
          [this](SlurmJob& queried_job, const base::ChildAnswer& answer) {
            const std::optional<JobRecord> record =
                answer.exit_code == 0 ? parse_show_job(answer.output) : std::nullopt;
            if (record && job_phase(record->state) == JobPhase::ended) {
              ended(queried_job, *record, true);
            } else if (record) {
              queried_job.watched.missing = queried_job.watched.unsettled = 0;
            } else if (is_unknown_job(answer.output + answer.errors)) {
              context_.has_sacct ? query_accounting(queried_job) : finish_unlisted(queried_job);
            }
          });
}

void SlurmWatching::query_accounting(SlurmJob& job) {
  run_for(job, {"sacct", "-n", "-P", "-X", "-j", job.launched.job, "-o", "JobID,State,ExitCode"},
          [this](SlurmJob& queried_job, const base::ChildAnswer& answer) {
            const std::optional<JobRecord> record =
                answer.exit_code == 0 ? parse_sacct(answer.output, queried_job.launched.job)
                                      : std::nullopt;
            if (record && job_phase(record->state) == JobPhase::ended) {
              ended(queried_job, *record, true);
            } else {
              // Accounting records ends late, or never if it is disabled.
              finish_unlisted(queried_job);
            }
          });
}

void SlurmWatching::finish_unlisted(SlurmJob& job) {
  const std::optional<JobLog> log = job.record();
  if (log && log->job == job.launched.job && log->exit_code) {
    jobs_.finish(job, {how_of(job, *log), ""});
  } else if (withdraw(job.files().record, wall_clock_seconds())) {
    jobs_.finish(job, {TakenAway{fmt::format("Slurm no longer lists job {}, which never started",
                                             job.launched.job)},
                       ""});
  } else if (const std::optional<JobLog> now = job.record();
             now && !now->job.empty() && now->job != job.launched.job) {
    jobs_.becomes_job(job, now->job);  // its duplicate
  } else {
    jobs_.finish(job, {TakenAway{fmt::format("Slurm no longer lists job {}, which recorded no end",
                                             job.launched.job)},
                       ""});
  }
}

void SlurmWatching::finish_from_files() {
  for (SlurmJob* job : std::vector<SlurmJob*>(jobs_.all().begin(), jobs_.all().end())) {
    if (!jobs_.contains(job) || job->at() != SlurmJob::At::job || !job->ran) continue;
    const std::optional<JobLog> log = job->record();
    // After a signal, only Slurm knows why.
    if (log && log->job == job->launched.job && log->exit_code && !log->signalled) {
      jobs_.finish(*job, {how_of(*job, *log), ""});
    }
  }
}

void SlurmWatching::cancel_duplicates(const std::vector<JobRow>& rows,
                                      SlurmClock::time_point began) {
  const std::string prefix = submission_id(context_.options.owner, 0);
  std::set<std::string_view> ours;
  for (const SlurmJob* job : jobs_.all()) ours.insert(job->launched.job);
  std::vector<std::string> jobs;
  for (const JobRow& row : rows) {
    if (!row.name.starts_with(prefix.substr(0, prefix.size() - 1)) || ours.contains(row.job) ||
        lost_.contains(row.name) || job_phase(row.state) != JobPhase::waiting) {
      continue;
    }
    const bool new_one = std::any_of(jobs_.all().begin(), jobs_.all().end(), [&](const auto* job) {
      return job->submission == row.name &&
             (job->at() == SlurmJob::At::submitting || job->watched.since >= began);
    });
    if (!new_one) jobs.push_back(row.job);
  }
  ending_.cancel(jobs);
}

void SlurmWatching::note_reason(const JobRow& row) {
  for (const std::string_view common :
       {"", "None", "Priority", "Resources", "JobArrayTaskLimit", "BeginTime", "Cleaning",
        "Dependency", "Licenses", "QOSMaxJobsPerUserLimit", "Prolog"}) {
    if (row.reason == common) return;
  }
  // In "ReqNodeNotAvail, UnavailableNodes:n[1-3]" the nodes change but the reason stays the same.
  const std::string reason = row.reason.substr(0, row.reason.find(','));
  if (!reasons_.insert(reason).second) return;
  context_.note(fmt::format("Slurm job {} is pending: {}", row.job, row.reason));
}

}  // namespace petlab::orchestrator
