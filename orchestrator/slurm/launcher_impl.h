#pragma once

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "orchestrator/slurm/command.h"
#include "orchestrator/slurm/launcher.h"
#include "orchestrator/slurm/submission.h"
#include "orchestrator/slurm/text.h"

namespace petlab::orchestrator {

// The inside of the Slurm launcher, for slurm_launcher.cpp (handing jobs in, ending them) and
// slurm_look.cpp (what became of them).

class SlurmLauncher;

// A job, from before it is handed in to its end. Its fields are the launcher's.
class SlurmWorker final : public Worker {
 public:
  using Clock = std::chrono::steady_clock;

  SlurmWorker(SlurmLauncher& its_launcher, std::string its_slot, std::filesystem::path folder,
              std::function<void(WorkerEnd)> when_over)
      : launcher(its_launcher),
        slot(std::move(its_slot)),
        directory(std::move(folder)),
        on_end(std::move(when_over)) {}
  ~SlurmWorker() override;

  void submit(const std::filesystem::path&) override {
    throw std::logic_error("a Slurm job has one attempt");
  }
  void close() override {
    if (!closing_since) closing_since = Clock::now();
  }
  void log_to(const std::filesystem::path&) override {}
  std::string last_lines() override;
  void stop() override;
  void kill() override;
  const results::Launch& launch() const override;
  bool waits() const override { return still; }
  bool suspended() const override { return paused; }
  std::optional<Clock::time_point> began() const override { return run_began; }

  enum class At {
    queue,       // not handed in
    submitting,  // in the sbatch that runs now
    lost,        // handed in, perhaps: the answer was lost
    job,         // a job of Slurm
    over,
  };
  enum class Wish { none, stop, kill };

  SlurmLauncher& launcher;
  const std::int64_t serial = ++made;
  const std::string slot;
  const protocol::TrialDirectory directory;
  std::function<void(WorkerEnd)> on_end;
  At at = At::queue;
  Wish wish = Wish::none;
  bool told = false;          // the wish, to Slurm
  bool still = true;          // waits in a queue, or is suspended
  bool paused = false;        // suspended
  bool ran = false;           // was seen running
  bool may_have_run = false;  // adopted: job.jsonl tells
  bool requeued = false;
  bool asked = false;  // scontrol runs for it
  int missing = 0;     // looks without it
  int unsettled = 0;   // looks at which it was over without its last line
  std::int64_t events_size = -1;
  Clock::time_point since;                     // looks that began before say nothing of it
  std::optional<Clock::time_point> run_began;  // suspensions before it was seen running left out
  std::optional<Clock::time_point> closing_since;
  std::string submission;
  std::int64_t task = 0;
  mutable results::Launch launched;

 private:
  static inline std::int64_t made = 0;
};

class SlurmLauncher final : public Launcher, public JobQueue {
 public:
  using Clock = std::chrono::steady_clock;

  SlurmLauncher(boost::asio::io_context& loop, SlurmOptions options);
  std::optional<std::string> acquire_slot() override;
  void release_slot(const std::string& slot) override {
    slots_.erase(std::stoll(slot.substr(slot.find('-') + 1)));
  }
  SlotDevice device(const std::string&) const override {
    return {options_.gpus.empty() ? "cpu" : "cuda", "", 0};
  }
  std::optional<results::Launch> noted(const std::filesystem::path& folder) const override;
  bool workers_stay() const override { return false; }
  std::string kind() const override { return "slurm"; }
  JobQueue* queue() override { return this; }
  void on_launch(std::function<void(const std::string&)> changed) override {
    changed_ = std::move(changed);
  }

  std::unique_ptr<Worker> start(const std::string& slot, const std::filesystem::path& folder,
                                std::function<void(WorkerEnd)> on_end) override;
  std::unique_ptr<Worker> adopt(const std::string& slot, const std::filesystem::path& folder,
                                const results::AttemptFacts& facts,
                                std::function<void(WorkerEnd)> on_end) override;
  void flush() override;
  void remove_left(const std::function<bool(const std::string& owner)>& ended) override;

  // For SlurmWorker.
  const SlurmOptions& options() const { return options_; }

  void stop(SlurmWorker& worker);
  void tell_soon();
  void forget(SlurmWorker& worker);

 private:
  // Of a worker that may be gone, with another at its address, when an answer comes.
  using Key = std::pair<SlurmWorker*, std::int64_t>;
  static Key key_of(SlurmWorker& worker) { return {&worker, worker.serial}; }
  SlurmWorker* find(const Key& key) const {
    return workers_.contains(key.first) && key.first->serial == key.second ? key.first : nullptr;
  }

  struct Lost {
    std::vector<SlurmWorker*> workers;
    int looks = 0;
    Clock::time_point since;
  };
  void note(const std::string& line) const {
    if (options_.note) options_.note(line);
  }

  // --- slurm_launcher.cpp: handing in

  void ask_limits();
  std::int64_t most_tasks() const;
  std::vector<std::string> sbatch_words(const Submission& submission) const;
  void submit();
  void submitted(const std::string& id, SlurmAnswer answer);
  std::string job_of(const std::string& job, const SlurmWorker& worker) const {
    return limits_ && limits_->max_array_size == 0 ? job : fmt::format("{}_{}", job, worker.task);
  }

  void try_again_in(Clock::duration pause);
  void becomes_job(SlurmWorker& worker, const std::string& job);

  // The worker's task of its submission is over, or was none.
  void leave(SlurmWorker& worker);

  // --- slurm_look.cpp

  bool to_be_looked_at() const;
  void wake(Clock::duration in);
  void look();
  void looked(SlurmAnswer& answer, Clock::time_point began);
  void find_lost(const std::map<std::string_view, std::string_view>& by_name,
                 Clock::time_point began);
  void seen(SlurmWorker& worker, const JobRow& row);
  static bool has_written(SlurmWorker& worker);
  void not_seen(SlurmWorker& worker);

  // `whole`: the record has the exit code too.
  void ended(SlurmWorker& worker, const JobRecord& record, bool whole);

  static decltype(WorkerEnd::how) how_of(int shell_code) {
    if (shell_code > 128 && shell_code <= 128 + 64) return Killed{shell_code - 128};
    return Exited{shell_code};
  }

  // What Slurm knows of one job; only of those that squeue does not tell enough of.
  void ask(SlurmWorker& worker);
  void ask_accounting(SlurmWorker& worker);

  // slurmctld knows no such job any more, so it is over; the files say how.
  void forgotten(SlurmWorker& worker);

  // While Slurm is silent a script's last line is proof enough.
  void believe_files();

  // Jobs of this orchestrator that no worker stands for: doubles of a lost answer.
  void end_unknown(const std::vector<JobRow>& rows, Clock::time_point began);
  void note_reason(const JobRow& row);

  // --- slurm_launcher.cpp: telling, ending

  void tell();
  void scancel(const std::vector<std::string>& options, const std::vector<std::string>& jobs,
               const std::vector<SlurmWorker*>& workers);

  void finish(SlurmWorker& worker, WorkerEnd end);
  static std::string one_line(std::string_view text);
  void silent(const SlurmAnswer& answer);
  void heard() {
    if (std::exchange(silent_, false)) note("Slurm answers again");
  }

  boost::asio::io_context& loop_;
  SlurmOptions options_;
  SlurmCommands commands_;
  boost::asio::steady_timer poll_timer_;
  boost::asio::steady_timer submit_timer_;
  std::function<void(const std::string&)> changed_;
  bool has_sacct_ = false;
  std::set<std::int64_t> slots_;
  std::set<SlurmWorker*> workers_;  // all that are not over
  std::deque<SlurmWorker*> queue_;
  std::vector<SlurmWorker*> in_sbatch_;
  std::map<std::string, Lost> lost_;                                           // by submission
  std::map<std::string, std::int64_t> open_tasks_;                             // of each submission
  std::map<std::string, std::map<std::filesystem::path, Submitted>> adopted_;  // by owner
  std::optional<SlurmLimits> limits_;
  std::int64_t tasks_ = 1;  // of the next submission, at most
  std::int64_t submissions_made_ = 0;
  Clock::time_point submit_not_before_;
  int refusals_ = 0;  // in a row
  bool accepted_ = false;
  std::string refused_text_;
  std::set<std::string> reasons_;
  bool submitting_ = false;
  bool looking_ = false;
  bool waiting_to_look_ = false;
  bool telling_ = false;
  bool silent_ = false;
  int asks_ = 0;
};

}  // namespace petlab::orchestrator
