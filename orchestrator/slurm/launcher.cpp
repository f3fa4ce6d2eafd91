#include "orchestrator/slurm/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "orchestrator/host/error.h"
#include "orchestrator/slurm/ending.h"
#include "orchestrator/slurm/handing_in.h"
#include "orchestrator/slurm/jobs.h"
#include "orchestrator/slurm/submission.h"
#include "orchestrator/slurm/watching.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;

bool names(const std::string& word, std::string_view long_name, char short_name) {
  if (word.starts_with("--")) {
    const std::string_view name = std::string_view(word).substr(2, word.find('=') - 2);
    return name == long_name;
  }
  return short_name != 0 && word.size() >= 2 && word[0] == '-' && word[1] == short_name;
}

class SlurmLauncher final : public Launcher, public JobQueue {
 public:
  SlurmLauncher(asio::io_context& loop, SlurmOptions options)
      : context_(loop, std::move(options)),
        jobs_(context_),
        handing_in_(context_, jobs_),
        ending_(context_, jobs_),
        watching_(context_, jobs_, handing_in_, ending_) {
    jobs_.request_changed = [this](SlurmJob& job) {
      if (job.at() == SlurmJob::At::queued) {
        handing_in_.withdraw_queued(job);
      } else {
        ending_.send_soon();
      }
    };
    jobs_.on_forget = [this](SlurmJob& job) {
      handing_in_.forget(job);
      watching_.forget(job);
    };
    handing_in_.watch = [this] { watching_.wake(context_.options.poll); };
    handing_in_.lost = [this](const std::string& id, const std::vector<SlurmJob*>& jobs) {
      watching_.find_submission(id, jobs);
      watching_.wake(context_.options.poll);
    };
  }

  std::optional<std::string> acquire_slot(std::int64_t gpus) override {
    std::int64_t number = 0;
    while (slots_.contains(number)) ++number;
    slots_.emplace(number, gpus);
    return fmt::format("slurm-{}", number);
  }
  std::string why_no_slot() const override {
    const auto waiting = std::count_if(
        jobs_.all().begin(), jobs_.all().end(),
        [](const SlurmJob* job) { return job->at() == SlurmJob::At::job && job->waiting; });
    return waiting == 0 ? std::string()
                        : fmt::format("{} of its jobs wait in Slurm's queue", waiting);
  }
  void release_slot(const std::string& slot) override { slots_.erase(slot_number(slot)); }
  SlotDevice device(const std::string& slot) const override {
    const bool has_gpus = !context_.options.gpus.empty() || slots_.at(slot_number(slot)) > 1;
    return {has_gpus ? "cuda" : "cpu", "", 0};
  }
  void use_device(const std::string& host, DeviceUse use, std::size_t failures) override;
  bool workers_stay() const override { return !context_.options.one_trial_a_job; }
  std::string kind() const override { return "slurm"; }
  JobQueue* queue() override { return this; }

  std::unique_ptr<Worker> start(const std::string& slot, const std::vector<std::filesystem::path>&,
                                std::function<void(WorkerEnd)> on_end) override {
    std::unique_ptr<SlurmJob> job = jobs_.make(slot, std::move(on_end));
    job->gpus = slots_.at(slot_number(slot));
    handing_in_.enqueue(*job);
    return job;
  }
  std::vector<LeftJob> take_left(const std::string& owner) override;
  void dismiss(const LeftJob& left) override {
    append_to_inbox(TaskFiles(context_.options.runs, left.name, left.task).inbox, kInboxEnd);
  }
  std::unique_ptr<Worker> adopt(const std::string& slot, const LeftJob& left,
                                std::function<void(WorkerEnd)> on_end) override;
  std::string number_of(const LeftJob& left) const {
    return handing_in_.number_in(left.number.substr(0, left.number.find(';')), left.array_task);
  }
  std::int64_t workers_of_job() const override {
    return std::max(1, context_.options.node_workers);
  }
  void flush() override { handing_in_.flush(); }
  void remove_left(const std::function<bool(const std::string& owner)>& ended) override;

 private:
  SlurmContext context_;
  SlurmJobs jobs_;
  SlurmHandingIn handing_in_;
  SlurmEnding ending_;
  SlurmWatching watching_;
  static std::int64_t slot_number(const std::string& slot) {
    return std::stoll(slot.substr(slot.find('-') + 1));
  }
  std::map<std::int64_t, std::int64_t> slots_;  // GPUs by number
};

// Pending jobs were submitted with an older --exclude, so they are updated, too.
void SlurmLauncher::use_device(const std::string& host, DeviceUse use, std::size_t) {
  const bool changed = use == DeviceUse::never ? context_.disabled.insert(host).second
                                               : context_.disabled.erase(host) > 0;
  if (!changed) return;
  std::set<std::string> waiting;  // array numbers
  for (const SlurmJob* job : jobs_.all()) {
    if (job->at() != SlurmJob::At::job || job->ran) continue;
    waiting.insert(job->launched.job.substr(0, job->launched.job.find('_')));
  }
  for (const std::string& array : waiting) {
    context_.run(
        {"scontrol", "update", "JobId=" + array, "ExcNodeList=" + context_.excluded_hosts()},
        kSlurmAnswerLimit, [this, array](const base::ChildAnswer& answer) {
          if (answer.exit_code == 0 || is_unknown_job(answer.output + answer.errors)) return;
          context_.note(fmt::format(
              "pending tasks of Slurm job {} may still run on a disabled host: scontrol update {}",
              array, answer.problem));
        });
  }
}

std::vector<LeftJob> SlurmLauncher::take_left(const std::string& owner) {
  std::vector<LeftJob> left = tasks_of(context_.options.runs, owner);
  for (const LeftJob& job : left) {
    const std::size_t end = std::min(job.number.find(';'), job.number.size());
    const std::string cluster = job.number.substr(std::min(end + 1, job.number.size()));
    if (job.number.empty() || cluster == context_.options.cluster) continue;
    throw Error(fmt::format("the jobs of the dead petlab run {} are in Slurm's {}", owner,
                            cluster.empty() ? "default cluster; name no other to adopt them"
                                            : fmt::format("cluster {0}; run with "
                                                          "--slurm-arg=--clusters={0}",
                                                          cluster)));
  }
  // Jobs without attempts are cancelled while they wait. One that starts nevertheless finds its
  // inboxes closed.
  std::set<std::string> without_number;
  std::set<std::string> to_cancel;
  for (const LeftJob& job : left) {
    if (!job.given.empty()) continue;
    dismiss(job);
    if (job.number.empty()) {
      without_number.insert(job.name);
    } else {
      to_cancel.insert(number_of(job));
    }
  }
  for (const LeftJob& job : left) {
    if (!job.given.empty()) to_cancel.erase(number_of(job));
  }
  for (const std::string& name : without_number) ending_.cancel_waiting(name);
  ending_.cancel_waiting(std::vector<std::string>(to_cancel.begin(), to_cancel.end()));
  std::erase_if(left, [](const LeftJob& job) { return job.given.empty(); });
  return left;
}

std::unique_ptr<Worker> SlurmLauncher::adopt(const std::string& slot, const LeftJob& left,
                                             std::function<void(WorkerEnd)> on_end) {
  std::unique_ptr<SlurmJob> job = jobs_.make(slot, std::move(on_end));
  job->submission = left.name;
  job->task = left.task;
  job->array_task = left.array_task;
  job->shares_job = left.shares_job;
  job->has_attempts = true;
  job->may_have_run = true;
  job->serves_others = left.has_others;
  job->watched.since = SlurmClock::now();
  const std::optional<JobLog> log = job->record();
  if (log && !log->job.empty()) {
    job->begin_at(SlurmJob::At::job);
    job->launched.job = log->job;
    job->begin(log->host);
  } else if (!left.number.empty()) {
    job->begin_at(SlurmJob::At::job);
    job->launched.job = number_of(left);
  } else {
    job->begin_at(SlurmJob::At::lost);
    watching_.find_submission(job->submission, {job.get()});
  }
  watching_.wake(context_.options.poll / 10);
  return job;
}

// Jobs that wait are cancelled. One that has begun ends once its submission's folder is gone.
void SlurmLauncher::remove_left(const std::function<bool(const std::string& owner)>& ended) {
  const std::filesystem::path& runs = context_.options.runs;
  for (const auto& [id, owner] : submission_owners(runs)) {
    if (!ended(owner)) continue;
    ending_.cancel_waiting(id);
    remove_submission(runs, id);
  }
}

}  // namespace

void check_slurm_options(const SlurmOptions& options) {
  if (options.poll < std::chrono::milliseconds(100)) {
    throw std::invalid_argument("--slurm-poll must be at least 100ms");
  }
  if (options.idle < std::chrono::seconds(1)) {
    throw std::invalid_argument("--slurm-idle must be at least 1s");
  }
  if (!options.time.empty() && !is_slurm_time(options.time)) {
    throw std::invalid_argument(
        fmt::format("--slurm-time is '{}', must be in sbatch's format: minutes, "
                    "hours:minutes:seconds or days-hours",
                    options.time));
  }
  constexpr std::pair<std::string_view, char> kReserved[] = {
      {"array", 'a'},  {"job-name", 'J'}, {"output", 'o'},  {"error", 'e'},   {"chdir", 'D'},
      {"parsable", 0}, {"wait", 'W'},     {"wrap", 0},      {"test-only", 0}, {"comment", 0},
      {"quiet", 'Q'},  {"help", 'h'},     {"version", 'V'}, {"usage", 0},
  };
  for (const std::string& word : options.arguments) {
    if (!word.starts_with('-')) {
      throw std::invalid_argument(fmt::format(
          "--slurm-arg is '{}', must be one word starting with -, such as --mem=8G", word));
    }
    for (const auto& [long_name, short_name] : kReserved) {
      if (!names(word, long_name, short_name)) continue;
      throw std::invalid_argument(
          fmt::format("--slurm-arg is '{}', which petlab sets itself", word));
    }
  }
}

void choose_cluster(SlurmOptions& options,
                    const std::function<std::optional<std::string>(const char*)>& environment) {
  std::string from;
  for (const char* variable : {"SLURM_CLUSTERS", "SBATCH_CLUSTERS"}) {
    if (const auto value = environment(variable); value && !value->empty()) {
      options.cluster = *value;
      from = variable;
    }
  }
  std::erase_if(options.arguments, [&](const std::string& word) {
    if (!names(word, "clusters", 'M') && !names(word, "cluster", 0)) return false;
    const std::size_t equals = word.find('=');
    options.cluster = word.starts_with("--") ? word.substr(std::min(equals, word.size() - 1) + 1)
                                             : word.substr(equals == 2 ? 3 : 2);
    from = "--slurm-arg";
    return true;
  });
  if (from.empty()) return;
  if (options.cluster.empty() || options.cluster == "all" ||
      options.cluster.find_first_of(", ") != std::string::npos) {
    throw std::invalid_argument(fmt::format(
        "{} names the clusters '{}', must be one cluster: petlab follows its jobs in one", from,
        options.cluster));
  }
}

std::unique_ptr<Launcher> make_slurm_launcher(asio::io_context& loop, SlurmOptions options) {
  check_slurm_options(options);
  if (options.runs.string().find('\n') != std::string::npos) {
    throw std::invalid_argument("--runs is a path with a line break, which Slurm jobs cannot use");
  }
  return std::make_unique<SlurmLauncher>(loop, std::move(options));
}

}  // namespace petlab::orchestrator
