// What became of the jobs: one squeue for all of them, and for few a closer look.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "orchestrator/host/error.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/slurm/launcher_impl.h"

namespace petlab::orchestrator {
namespace {

// So many looks without a job, or without the line that its script ends with, before it is asked
// for by itself: a look may be older than the job, and other hosts see a file late.
constexpr int kLooks = 2;
constexpr int kAsksAtOnce = 4;

}  // namespace

bool SlurmLauncher::to_be_looked_at() const {
  return !lost_.empty() || std::any_of(workers_.begin(), workers_.end(), [](const auto* worker) {
    return worker->at == SlurmWorker::At::job;
  });
}

void SlurmLauncher::wake(Clock::duration in) {
  if (looking_ || waiting_to_look_ || !to_be_looked_at()) return;
  waiting_to_look_ = true;
  poll_timer_.expires_after(in);
  poll_timer_.async_wait([this](const boost::system::error_code& error) {
    waiting_to_look_ = false;
    if (!error) look();
  });
}

void SlurmLauncher::look() {
  if (!to_be_looked_at()) return;
  looking_ = true;
  const Clock::time_point began = Clock::now();
  commands_.run({"squeue", "--noheader", "--array", "--states=all",
                 fmt::format("--user={}", ::geteuid()), "-o", kSqueueFormat},
                kSlurmAnswerLimit, [this, began](SlurmAnswer answer) {
                  looking_ = false;
                  if (answer.exit_code == 0) {
                    looked(answer, began);
                  } else {
                    silent(answer);
                    believe_files();
                  }
                  tell();
                  wake(options_.poll);
                });
}

void SlurmLauncher::looked(SlurmAnswer& answer, Clock::time_point began) {
  std::vector<JobRow> rows;
  try {
    rows = parse_squeue(answer.output);
  } catch (const Error& error) {
    answer.errors = error.what();
    silent(answer);
    return;
  }
  heard();
  std::map<std::string_view, const JobRow*> by_job;
  std::map<std::string_view, std::string_view> by_name;  // the number of the (array of) jobs
  for (const JobRow& row : rows) {
    const std::string_view job = row.job;
    by_job[job] = &row;
    by_name[row.name] = job.substr(0, job.find('_'));
  }
  find_lost(by_name, began);
  // finish() changes the set.
  for (SlurmWorker* worker : std::vector<SlurmWorker*>(workers_.begin(), workers_.end())) {
    if (!workers_.contains(worker) || worker->at != SlurmWorker::At::job) continue;
    const std::string_view job = worker->launched.job;
    auto found = by_job.find(job);
    if (found == by_job.end()) {
      // Tasks that were cancelled before they began share the line of their array.
      found = by_job.find(job.substr(0, job.find('_')));
      if (found != by_job.end() && job_phase(found->second->state) != JobPhase::ended) {
        found = by_job.end();
      }
    }
    if (found != by_job.end()) {
      seen(*worker, *found->second);
    } else if (began > worker->since) {
      not_seen(*worker);
    }
  }
  end_unknown(rows, began);
}

void SlurmLauncher::find_lost(const std::map<std::string_view, std::string_view>& by_name,
                              Clock::time_point began) {
  for (auto entry = lost_.begin(); entry != lost_.end();) {
    auto& [id, lost] = *entry;
    const auto found = by_name.find(id);
    if (found == by_name.end() && (began <= lost.since || ++lost.looks < kLooks)) {
      ++entry;
      continue;
    }
    const std::vector<SlurmWorker*> workers = std::exchange(lost.workers, {});
    const std::string array = found == by_name.end() ? std::string() : std::string(found->second);
    entry = lost_.erase(entry);
    for (SlurmWorker* worker : workers) {
      const std::optional<JobLog> log = read_job_log(worker->directory);
      if (log && !log->job.empty()) {
        becomes_job(*worker, log->job);
      } else if (!array.empty()) {
        becomes_job(*worker, job_of(array, *worker));
      } else {
        // Should its job come after all, only one of the two runs the attempt.
        worker->at = SlurmWorker::At::queue;
        queue_.push_back(worker);
        if (worker->wish != SlurmWorker::Wish::none) stop(*worker);
      }
    }
  }
}

void SlurmLauncher::seen(SlurmWorker& worker, const JobRow& row) {
  worker.missing = 0;
  worker.paused = job_phase(row.state) == JobPhase::paused;
  switch (job_phase(row.state)) {
    case JobPhase::waiting:
      worker.still = true;
      note_reason(row);
      if ((worker.ran || worker.may_have_run) && !worker.requeued) {
        const std::optional<JobLog> log = read_job_log(worker.directory);
        if (log && log->job == worker.launched.job) {
          worker.requeued = true;
          worker.wish = SlurmWorker::Wish::kill;
          worker.told = false;
        }
        worker.ran = worker.may_have_run = false;
      }
      return;
    case JobPhase::paused:
      worker.still = true;
      return;
    case JobPhase::running:
      worker.still = false;
      if (!worker.ran) {
        worker.ran = true;
        worker.launched.host = row.host;
        if (row.ran) worker.run_began = Clock::now() - *row.ran;
        if (changed_) changed_(worker.slot);
      }
      return;
    case JobPhase::ended:
      ended(worker, {row.state, 0, 0}, false);
      return;
  }
}

// Whatever Slurm says: who writes is alive.
bool SlurmLauncher::has_written(SlurmWorker& worker) {
  std::error_code error;
  const auto size = std::filesystem::file_size(worker.directory.events(), error);
  const std::int64_t events = error ? -1 : static_cast<std::int64_t>(size);
  return std::exchange(worker.events_size, events) != events;
}

void SlurmLauncher::not_seen(SlurmWorker& worker) {
  if (worker.told && !worker.ran) {
    // A task that is cancelled before it began leaves no line.
    ended(worker, {"CANCELLED", 0, 0}, false);
    return;
  }
  if (has_written(worker)) worker.missing = 0;
  if (++worker.missing >= kLooks) ask(worker);
}

void SlurmLauncher::ended(SlurmWorker& worker, const JobRecord& record, bool whole) {
  const std::optional<JobLog> log = read_job_log(worker.directory);
  if (log && !log->job.empty() && log->job != worker.launched.job) {
    // Its double had begun before: that one is the attempt's job.
    becomes_job(worker, log->job);
    worker.may_have_run = true;
    return;
  }
  WorkerEnd end = worker_end(worker.launched.job, record);
  if (worker.requeued) {
    end.how = TakenAway{fmt::format("Slurm requeued job {}", worker.launched.job)};
  }
  const bool began = log && log->job == worker.launched.job;
  if (std::holds_alternative<TakenAway>(end.how) && began && !log->exit_code) {
    // A node that is lost to Slurm may still train, and write checkpoints over those before.
    if (has_written(worker)) worker.unsettled = 0;
    if (++worker.unsettled <= kLooks) return;
  }
  if (std::holds_alternative<Exited>(end.how)) {
    if (log && log->exit_code) {
      end.how = how_of(*log->exit_code);
    } else if (!whole) {
      if (++worker.unsettled > kLooks) ask(worker);
      return;
    }
  }
  finish(worker, std::move(end));
}

void SlurmLauncher::ask(SlurmWorker& worker) {
  if (worker.asked || asks_ >= kAsksAtOnce) return;
  worker.asked = true;
  ++asks_;
  commands_.run({"scontrol", "-o", "show", "job", worker.launched.job}, kSlurmAnswerLimit,
                [this, key = key_of(worker)](SlurmAnswer answer) {
                  --asks_;
                  if (find(key) == nullptr) return;
                  SlurmWorker& its = *key.first;
                  its.asked = false;
                  const std::optional<JobRecord> record =
                      answer.exit_code == 0 ? parse_show_job(answer.output) : std::nullopt;
                  if (record && job_phase(record->state) == JobPhase::ended) {
                    ended(its, *record, true);
                  } else if (record) {
                    its.missing = its.unsettled = 0;
                  } else if (is_unknown_job(answer.output + answer.errors)) {
                    has_sacct_ ? ask_accounting(its) : forgotten(its);
                  }
                });
}

void SlurmLauncher::ask_accounting(SlurmWorker& worker) {
  worker.asked = true;
  ++asks_;
  commands_.run(
      {"sacct", "-n", "-P", "-X", "-j", worker.launched.job, "-o", "JobID,State,ExitCode"},
      kSlurmAnswerLimit, [this, key = key_of(worker)](SlurmAnswer answer) {
        --asks_;
        if (find(key) == nullptr) return;
        SlurmWorker& its = *key.first;
        its.asked = false;
        std::optional<JobRecord> record;
        if (answer.exit_code == 0) {
          record = parse_sacct(answer.output, its.launched.job);
        }
        if (record && job_phase(record->state) == JobPhase::ended) {
          ended(its, *record, true);
        } else {
          // Accounting is slow to hear of an end, and never does where it is off.
          forgotten(its);
        }
      });
}

void SlurmLauncher::forgotten(SlurmWorker& worker) {
  const std::optional<JobLog> log = read_job_log(worker.directory);
  if (log && log->job == worker.launched.job && log->exit_code) {
    finish(worker, {how_of(*log->exit_code), ""});
  } else if (withdraw(worker.directory, wall_clock_seconds())) {
    finish(worker, {TakenAway{fmt::format("Slurm has forgotten job {}, which never began",
                                          worker.launched.job)},
                    ""});
  } else if (const std::optional<JobLog> now = read_job_log(worker.directory);
             now && !now->job.empty() && now->job != worker.launched.job) {
    becomes_job(worker, now->job);  // its double
  } else {
    finish(worker, {TakenAway{fmt::format("Slurm has forgotten job {}, which noted no end",
                                          worker.launched.job)},
                    ""});
  }
}

void SlurmLauncher::believe_files() {
  for (SlurmWorker* worker : std::vector<SlurmWorker*>(workers_.begin(), workers_.end())) {
    if (!workers_.contains(worker) || worker->at != SlurmWorker::At::job || !worker->ran) continue;
    const std::optional<JobLog> log = read_job_log(worker->directory);
    if (log && log->job == worker->launched.job && log->exit_code) {
      finish(*worker, {how_of(*log->exit_code), ""});
    }
  }
}

void SlurmLauncher::end_unknown(const std::vector<JobRow>& rows, Clock::time_point began) {
  const std::string prefix = submission_id(options_.owner, 0);
  std::set<std::string_view> ours;
  for (const SlurmWorker* worker : workers_) ours.insert(worker->launched.job);
  std::vector<std::string> jobs;
  for (const JobRow& row : rows) {
    if (!row.name.starts_with(prefix.substr(0, prefix.size() - 1)) || ours.contains(row.job) ||
        lost_.contains(row.name) || job_phase(row.state) != JobPhase::waiting) {
      continue;
    }
    const bool new_one = std::any_of(workers_.begin(), workers_.end(), [&](const auto* worker) {
      return worker->submission == row.name &&
             (worker->at == SlurmWorker::At::submitting || worker->since >= began);
    });
    if (!new_one) jobs.push_back(row.job);
  }
  scancel({}, jobs, {});
}

void SlurmLauncher::note_reason(const JobRow& row) {
  for (const std::string_view common :
       {"", "None", "Priority", "Resources", "JobArrayTaskLimit", "BeginTime", "Cleaning",
        "Dependency", "Licenses", "QOSMaxJobsPerUserLimit", "Prolog"}) {
    if (row.reason == common) return;
  }
  // "ReqNodeNotAvail, UnavailableNodes:n[1-3]": the nodes change, the reason does not.
  const std::string reason = row.reason.substr(0, row.reason.find(','));
  if (!reasons_.insert(reason).second) return;
  note(fmt::format("Slurm job {} waits: {}", row.job, row.reason));
}

}  // namespace petlab::orchestrator
