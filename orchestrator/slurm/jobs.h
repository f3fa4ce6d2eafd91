#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "orchestrator/slurm/command.h"
#include "orchestrator/slurm/launcher.h"
#include "orchestrator/slurm/submission.h"

namespace petlab::orchestrator {

using SlurmClock = std::chrono::steady_clock;

/// Shared by all parts of the Slurm launcher: options, Slurm's programs and notes to the user.
class SlurmContext {
 public:
  /// Throws std::invalid_argument if a required program of Slurm is not on PATH.
  SlurmContext(boost::asio::io_context& io, SlurmOptions slurm_options);

  /// Runs one of Slurm's programs for the cluster of the options.
  void run(std::vector<std::string> words, std::chrono::milliseconds limit,
           std::function<void(base::ChildAnswer)> done) {
    commands.run(slurm_command(std::move(words), limit, options.cluster), std::move(done));
  }
  void note(const std::string& line) const {
    if (options.note) options.note(line);
  }
  /// Call after a command got no answer. Notes it once, until Slurm answers again.
  void note_no_answer(const base::ChildAnswer& answer);
  /// Call after a command got an answer.
  void note_answer();
  /// The value of sbatch --exclude: the hosts in --slurm-arg, and `disabled`.
  std::string excluded_hosts() const;

  boost::asio::io_context& loop;
  const SlurmOptions options;
  base::Children commands;
  bool has_sacct = false;
  std::set<std::string> disabled;  // hosts disabled by this run

 private:
  bool no_answer_ = false;
};

/// Joins lines with spaces: "a\nb\n" becomes "a b".
std::string in_one_line(std::string_view text);

class SlurmJobs;

/// A job, from before its submission until its end; or one of several workers of a job.
class SlurmJob final : public Worker {
 public:
  /// Transitions: queued -> submitting, job (a duplicate had started), over; submitting -> job,
  /// lost, queued (rejected for now), over (rejected); lost -> job, queued; job -> job (its
  /// duplicate), over.
  enum class At {
    queued,      ///< not submitted
    submitting,  ///< in the running sbatch
    lost,        ///< perhaps submitted: the answer was lost
    job,         ///< in Slurm, with a job number
    over,
  };
  enum class Request { none, stop, kill };

  SlurmJob(SlurmJobs& jobs, std::string slot_name, std::function<void(WorkerEnd)> when_over);
  ~SlurmJob() override;

  /// Appends the attempt to the inbox. Invariant: Slurm has the job, and it was not closed.
  void submit(const std::vector<std::filesystem::path>& attempt_folders) override;
  void close() override;
  void log_to(const std::filesystem::path& log) override { log_ = log; }
  std::string last_lines(const std::filesystem::path& log) override;
  /// Those of the current attempt.
  std::string last_lines() { return last_lines(log_); }
  void stop() override;
  void kill() override;
  const results::Launch& launch() const override { return launched; }
  bool waits() const override { return waiting; }
  bool suspended() const override { return paused; }
  std::optional<SlurmClock::time_point> ends_by() const override { return ends; }

  At at() const { return at_; }
  /// Invariant: may_follow() allows the change.
  void become(At at);
  /// Sets the first state of an adopted job.
  void begin_at(At at) { at_ = at; }
  /// Records a request. It is sent to Slurm later.
  void request(Request wanted);
  bool is_to_end() const { return requested != Request::none; }
  /// True if it gets no more attempts, and was not asked to end before it is through.
  bool is_closed() const { return closing_since_ && !is_to_end(); }
  /// True if the current attempt's events.jsonl has changed since the last call. A worker that
  /// writes is alive even if Slurm reports otherwise.
  bool has_written();
  TaskFiles files() const;
  /// The job's record; std::nullopt if there is none yet. Throws base::Error.
  std::optional<JobLog> record() const;
  /// The job has begun, on this host.
  void begin(const std::string& host);

  const std::int64_t serial;
  const std::string slot;
  std::function<void(WorkerEnd)> on_end;
  Request requested = Request::none;
  bool request_sent = false;  // to Slurm
  bool waiting = true;        // in Slurm's queue, or suspended
  bool paused = false;        // suspended
  bool ran = false;           // was seen running
  bool has_attempts = false;  // in its inbox
  bool may_have_run = false;  // adopted; its record shows whether it ran
  bool requeued = false;
  bool serves_others = false;  // also has attempts that this run does not watch
  /// The results of polling Slurm's queue.
  struct Watched {
    bool queried = false;  // a scontrol or sacct for it is running
    int missing = 0;       // polls that did not list it
    int unsettled = 0;     // polls that listed it as ended before its record did
    std::optional<SlurmClock::time_point> over;  // its record had an end, seen first at this time
    SlurmClock::time_point since;                // polls that began earlier do not count
  };
  Watched watched;
  std::optional<SlurmClock::time_point> ends;  // its time limit
  std::string submission;
  std::int64_t gpus = 1;        // that its trials need; 1: as the options say
  std::int64_t task = 0;        // in its submission
  std::int64_t array_task = 0;  // of its job, in the array
  bool shares_job = false;      // with other workers: its end is not that of the job
  results::Launch launched;

 private:
  SlurmJobs& jobs_;
  At at_ = At::queued;
  std::optional<SlurmClock::time_point> closing_since_;
  std::filesystem::path log_;  // of the current attempt; empty: none yet
  std::int64_t events_size_ = -1;
};

/// All jobs that are not over, and their submissions.
class SlurmJobs {
 public:
  explicit SlurmJobs(SlurmContext& context) : context_(context) {}

  /// Identifies a job when an answer arrives: it may be gone, and another job may have its address.
  using Key = std::pair<SlurmJob*, std::int64_t>;
  static Key key_of(SlurmJob& job) { return {&job, job.serial}; }
  SlurmJob* find(const Key& key) const;
  bool contains(SlurmJob* job) const { return jobs_.contains(job); }
  const std::set<SlurmJob*>& all() const { return jobs_; }

  std::unique_ptr<SlurmJob> make(const std::string& slot, std::function<void(WorkerEnd)> on_end);
  /// Records the job's number in Slurm, after its submission or when its duplicate is found.
  void becomes_job(SlurmJob& job, const std::string& number);
  /// Adds `count` open tasks to a submission.
  void open_tasks(const std::string& submission, std::int64_t count) {
    open_tasks_[submission] += count;
  }
  /// Closes the job's task in its submission, if it had one. Removes a submission of this run
  /// without open tasks.
  void leave(SlurmJob& job);
  void forget(SlurmJob& job);
  /// Reports the job's end to the run.
  void finish(SlurmJob& job, WorkerEnd end);
  /// The same from the loop, of a job that was withdrawn before it began.
  void finish_soon(SlurmJob& job, const std::string& why);

  // Set by the launcher.
  std::function<void(SlurmJob&)> request_changed;
  std::function<void(SlurmJob&)> on_forget;

  SlurmContext& context() const { return context_; }

 private:
  SlurmContext& context_;
  std::set<SlurmJob*> jobs_;
  std::map<std::string, std::int64_t> open_tasks_;  // by submission
};

}  // namespace petlab::orchestrator
