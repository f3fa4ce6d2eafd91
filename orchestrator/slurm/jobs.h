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
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

using SlurmClock = std::chrono::steady_clock;

/// What all parts of the Slurm launcher use: its options, Slurm's programs, the user's ear.
class SlurmContext {
 public:
  /// Throws std::invalid_argument where a program of Slurm is not on PATH.
  SlurmContext(boost::asio::io_context& io, SlurmOptions its_options);

  void note(const std::string& line) const {
    if (options.note) options.note(line);
  }
  /// A command got no answer; the user is told once.
  void silent(const base::ChildAnswer& answer);
  /// One got an answer again.
  void heard();
  /// The value of sbatch --exclude: hosts that the user excludes with --slurm-arg, and `disabled`.
  std::string excluded_hosts() const;

  boost::asio::io_context& loop;
  const SlurmOptions options;
  base::Children commands;
  bool has_sacct = false;
  std::set<std::string> disabled;  // hosts that this run disabled

 private:
  bool silent_ = false;
};

/// "a b" of "a\nb\n".
std::string in_one_line(std::string_view text);

class SlurmJobs;

/// A job, from before it is handed in to its end.
class SlurmJob final : public Worker {
 public:
  /// queued -> submitting, job (its double had begun), over; submitting -> job, lost, queued
  /// (refused for now), over (refused); lost -> job, queued; job -> job (its double), over.
  enum class At {
    queued,      ///< not handed in
    submitting,  ///< in the sbatch that runs now
    lost,        ///< handed in, perhaps: the answer was lost
    job,         ///< a job of Slurm
    over,
  };
  enum class Request { none, stop, kill };

  SlurmJob(SlurmJobs& jobs, std::string its_slot, std::filesystem::path folder,
           std::function<void(WorkerEnd)> when_over);
  ~SlurmJob() override;

  void submit(const std::filesystem::path&) override;
  void close() override;
  void log_to(const std::filesystem::path&) override {}
  std::string last_lines(const std::filesystem::path& log) override;
  void stop() override;
  void kill() override;
  const results::Launch& launch() const override;
  bool waits() const override { return waiting; }
  bool suspended() const override { return paused; }
  std::optional<SlurmClock::time_point> began() const override { return run_began; }

  At at() const { return at_; }
  /// Throws std::logic_error where there is no such change.
  void become(At at);
  /// For one that was adopted: where it is from the start.
  void begin_at(At at) { at_ = at; }
  /// Asked for, and not told to Slurm yet.
  void request(Request wanted);
  bool is_to_end() const { return requested != Request::none; }
  /// Whatever Slurm says: who writes is alive. True where there is more than at the last call.
  bool has_written();

  const std::int64_t serial;
  const std::string slot;
  const protocol::TrialDirectory directory;
  std::function<void(WorkerEnd)> on_end;
  Request requested = Request::none;
  bool request_sent = false;  // to Slurm
  bool waiting = true;        // in a queue, or suspended
  bool paused = false;        // suspended
  bool ran = false;           // was seen running
  bool may_have_run = false;  // adopted: job.jsonl tells
  bool requeued = false;
  /// What looks at Slurm's queue found.
  struct Watched {
    bool asked = false;            // scontrol or sacct runs for it
    int missing = 0;               // looks without it
    int unsettled = 0;             // looks at which it was over without its last line
    SlurmClock::time_point since;  // looks that began before say nothing of it
  };
  Watched watched;
  std::optional<SlurmClock::time_point> run_began;  // without suspensions before it was seen
  std::string submission;
  std::int64_t task = 0;
  mutable results::Launch launched;

 private:
  SlurmJobs& jobs_;
  At at_ = At::queued;
  std::optional<SlurmClock::time_point> closing_since_;
  std::int64_t events_size_ = -1;
};

/// All jobs that are not over, and the submissions that they came in.
class SlurmJobs {
 public:
  explicit SlurmJobs(SlurmContext& context) : context_(context) {}

  /// Of a job that may be gone, with another at its address, when an answer comes.
  using Key = std::pair<SlurmJob*, std::int64_t>;
  static Key key_of(SlurmJob& job) { return {&job, job.serial}; }
  SlurmJob* find(const Key& key) const;
  bool contains(SlurmJob* job) const { return jobs_.contains(job); }
  const std::set<SlurmJob*>& all() const { return jobs_; }

  std::unique_ptr<SlurmJob> make(const std::string& slot, const std::filesystem::path& folder,
                                 std::function<void(WorkerEnd)> on_end);
  /// It is in Slurm's queue under this number, or was all the time.
  void becomes_job(SlurmJob& job, const std::string& number);
  /// So many tasks of a submission are open.
  void open_tasks(const std::string& submission, std::int64_t count) {
    open_tasks_[submission] += count;
  }
  /// The job's task of its submission is over, or was none.
  void leave(SlurmJob& job);
  void forget(SlurmJob& job);
  /// Tells the run of its end.
  void finish(SlurmJob& job, WorkerEnd end);

  // Set by the launcher.
  std::function<void(SlurmJob&)> request_changed;
  std::function<void(SlurmJob&)> on_forget;
  std::function<void(const std::string& slot)> launch_changed;

  SlurmContext& context() const { return context_; }

 private:
  SlurmContext& context_;
  std::set<SlurmJob*> jobs_;
  std::map<std::string, std::int64_t> open_tasks_;  // of each submission
};

}  // namespace petlab::orchestrator
