#include "orchestrator/slurm/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>

#include "base/programs.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/slurm/launcher_impl.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;

// sbatch itself tries for two minutes where the whole cluster has too many jobs.
constexpr auto kSubmitLimit = std::chrono::minutes(5);
constexpr std::int64_t kMostTasks = 1000;
constexpr std::size_t kMostAtOnce = 200;  // jobs of one scancel
constexpr auto kLongestPause = std::chrono::seconds(60);
constexpr int kRefusalsAfterSuccess = 8;
// A job whose trial is over ends by itself; one that hangs then is ended after this.
constexpr auto kClosing = std::chrono::minutes(1);

bool names(const std::string& word, std::string_view long_name, char short_name) {
  if (word.starts_with("--")) {
    const std::string_view name = std::string_view(word).substr(2, word.find('=') - 2);
    return name == long_name;
  }
  return short_name != 0 && word.size() >= 2 && word[0] == '-' && word[1] == short_name;
}

}  // namespace

SlurmWorker::~SlurmWorker() { launcher.forget(*this); }

std::string SlurmWorker::last_lines() {
  return job_last_lines(directory, launcher.options().runs, submission, task);
}

// A short job may be over before it is ever seen running: its own file has the host.
const results::Launch& SlurmWorker::launch() const {
  if (launched.host.empty() && at == At::job) {
    const std::optional<JobLog> log = read_job_log(directory);
    if (log && log->job == launched.job) launched.host = log->host;
  }
  return launched;
}

void SlurmWorker::stop() {
  if (at == At::over || wish != Wish::none) return;
  wish = Wish::stop;
  launcher.stop(*this);
}

void SlurmWorker::kill() {
  if (at == At::over || wish == Wish::kill) return;
  if (wish == Wish::none && closing_since && Clock::now() - *closing_since < kClosing) return;
  wish = Wish::kill;
  told = false;
  launcher.stop(*this);
}

SlurmLauncher::SlurmLauncher(asio::io_context& loop, SlurmOptions options)
    : loop_(loop),
      options_(std::move(options)),
      commands_(loop),
      poll_timer_(loop),
      submit_timer_(loop) {
  const char* path = std::getenv("PATH");
  for (const char* program : kSlurmPrograms) {
    if (!base::find_program(program, path ? path : "").empty()) continue;
    throw std::invalid_argument(fmt::format("--launcher is slurm, but {} is not on PATH", program));
  }
  has_sacct_ = !base::find_program("sacct", path ? path : "").empty();
}

std::optional<std::string> SlurmLauncher::acquire_slot() {
  std::int64_t number = 0;
  while (slots_.contains(number)) ++number;
  slots_.insert(number);
  return fmt::format("slurm-{}", number);
}

std::unique_ptr<Worker> SlurmLauncher::start(const std::string& slot,
                                             const std::filesystem::path& folder,
                                             std::function<void(WorkerEnd)> on_end) {
  auto worker = std::make_unique<SlurmWorker>(*this, slot, folder, std::move(on_end));
  workers_.insert(worker.get());
  queue_.push_back(worker.get());
  return worker;
}

std::unique_ptr<Worker> SlurmLauncher::adopt(const std::string& slot,
                                             const std::filesystem::path& folder,
                                             const results::AttemptFacts& facts,
                                             std::function<void(WorkerEnd)> on_end) {
  auto worker = std::make_unique<SlurmWorker>(*this, slot, folder, std::move(on_end));
  workers_.insert(worker.get());
  auto known = adopted_.find(facts.begun.owner);
  if (known == adopted_.end()) {
    known =
        adopted_.emplace(facts.begun.owner, submissions_of(options_.runs, facts.begun.owner)).first;
  }
  if (facts.launch) worker->launched = *facts.launch;
  const std::optional<JobLog> log = read_job_log(worker->directory);
  if (log && !log->job.empty()) worker->launched.job = log->job;
  worker->since = Clock::now();
  const auto submitted = known->second.find(folder);
  if (submitted != known->second.end()) {
    worker->submission = submitted->second.id;
    worker->task = submitted->second.task;
    ++open_tasks_[worker->submission];
  }
  if (!worker->launched.job.empty()) {
    worker->at = SlurmWorker::At::job;
    worker->may_have_run = true;
    wake(options_.poll / 10);
  } else if (submitted != known->second.end()) {
    worker->at = SlurmWorker::At::lost;
    lost_[worker->submission].workers.push_back(worker.get());
    lost_[worker->submission].since = Clock::now();
    wake(options_.poll / 10);
  } else {
    queue_.push_back(worker.get());
  }
  return worker;
}

void SlurmLauncher::remove_left(const std::function<bool(const std::string& owner)>& ended) {
  for (const auto& [id, owner] : submission_owners(options_.runs)) {
    if (ended(owner)) remove_submission(options_.runs, id);
  }
}

void SlurmLauncher::flush() {
  if (submitting_ || queue_.empty() || Clock::now() < submit_not_before_) return;
  if (!limits_) {
    ask_limits();
    return;
  }
  submit();
}

void SlurmLauncher::stop(SlurmWorker& worker) {
  if (worker.at == SlurmWorker::At::queue) {
    std::erase(queue_, &worker);
    // One that was handed in before, perhaps, must not come back.
    if (!worker.submission.empty() && !withdraw(worker.directory, wall_clock_seconds())) {
      becomes_job(worker, read_job_log(worker.directory)->job);
      return;
    }
    worker.at = SlurmWorker::At::over;
    asio::post(loop_, [this, key = key_of(worker)] {
      if (SlurmWorker* its = find(key)) {
        finish(*its, {TakenAway{"withdrawn before it was handed to Slurm"}, ""});
      }
    });
    return;
  }
  tell_soon();
}

void SlurmLauncher::tell_soon() {
  if (std::exchange(telling_, true)) return;
  asio::post(loop_, [this] {
    telling_ = false;
    tell();
  });
}

void SlurmLauncher::forget(SlurmWorker& worker) {
  std::erase(queue_, &worker);
  for (auto& [id, lost] : lost_) std::erase(lost.workers, &worker);
  std::erase(in_sbatch_, &worker);
  workers_.erase(&worker);
}

void SlurmLauncher::ask_limits() {
  submitting_ = true;
  commands_.run({"scontrol", "show", "config"}, kSlurmAnswerLimit, [this](SlurmAnswer answer) {
    submitting_ = false;
    if (answer.exit_code == 0) {
      limits_ = parse_config(answer.output);
      tasks_ = most_tasks();
      heard();
      flush();
    } else {
      silent(answer);
      try_again_in(options_.poll);
    }
  });
}

std::vector<std::string> SlurmLauncher::sbatch_words(const Submission& submission) const {
  const std::filesystem::path folder = submission_folder(options_.runs, submission.id);
  std::vector<std::string> words = {"sbatch", "--nodes=1", "--ntasks=1",
                                    fmt::format("--cpus-per-task={}", options_.threads)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", option, value));
  };
  add("partition", options_.partition);
  add("account", options_.account);
  add("gres", options_.gpus.empty() ? "" : "gpu:" + options_.gpus);
  add("time", options_.time);
  // A job that is started again would find its attempt begun: a new attempt goes on instead.
  words.push_back("--no-requeue");
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  const bool arrays = limits_->max_array_size > 0;
  if (arrays) words.push_back(fmt::format("--array=0-{}", submission.attempts.size() - 1));
  words.push_back("--parsable");
  words.push_back("--job-name=" + submission.id);
  words.push_back("--comment=petlab run of sweep " + options_.sweep);
  words.push_back("--chdir=" + folder.string());
  words.push_back("--output=" + (folder / (arrays ? "%a.out" : "0.out")).string());
  words.push_back((folder / "job.sh").string());
  return words;
}

void SlurmLauncher::submit() {
  const auto count = static_cast<std::size_t>(
      std::min<std::int64_t>(tasks_, static_cast<std::int64_t>(queue_.size())));
  Submission submission;
  submission.id = submission_id(options_.owner, ++submissions_made_);
  for (std::size_t task = 0; task < count; ++task) {
    SlurmWorker* worker = queue_.front();
    queue_.pop_front();
    if (!worker->submission.empty()) leave(*worker);
    worker->at = SlurmWorker::At::submitting;
    worker->submission = submission.id;
    worker->task = static_cast<std::int64_t>(task);
    submission.attempts.push_back(worker->directory.folder());
    in_sbatch_.push_back(worker);
  }
  open_tasks_[submission.id] = static_cast<std::int64_t>(count);
  write_submission(options_.runs, submission, options_.worker, options_.threads);
  fault_point("submission_written");
  submitting_ = true;
  const std::string id = submission.id;
  commands_.run(sbatch_words(submission), kSubmitLimit,
                [this, id](SlurmAnswer answer) { submitted(id, std::move(answer)); });
}

void SlurmLauncher::submitted(const std::string& id, SlurmAnswer answer) {
  fault_point("submitted");
  submitting_ = false;
  const std::vector<SlurmWorker*> workers = std::exchange(in_sbatch_, {});
  std::string job;
  if (answer.exit_code == 0) {
    try {
      job = parse_submission(answer.output);
    } catch (const Error& error) {
      answer.errors = error.what();
    }
  }
  if (!job.empty()) {
    refusals_ = 0;
    accepted_ = true;
    tasks_ = std::min(most_tasks(), tasks_ * 2);
    for (SlurmWorker* worker : workers) becomes_job(*worker, job_of(job, *worker));
    wake(options_.poll);
    flush();
    return;
  }
  const bool unclear =
      answer.timed_out || answer.exit_code <= 0 || refusal_from(answer.errors) == Refusal::silence;
  if (unclear) {
    // It may have made the jobs: they are looked for by their name.
    silent(answer);
    Lost& lost = lost_[id];
    lost.workers = workers;
    lost.since = Clock::now();
    for (SlurmWorker* worker : workers) worker->at = SlurmWorker::At::lost;
    submit_not_before_ = Clock::now() + options_.poll;
    wake(options_.poll);
    return;
  }
  for (SlurmWorker* worker : workers) leave(*worker);
  ++refusals_;
  const bool limit = refusal_from(answer.errors) == Refusal::limit;
  if (!limit && (!accepted_ || refusals_ > kRefusalsAfterSuccess)) {
    for (SlurmWorker* worker : workers) {
      finish(*worker, {Refused{"sbatch: " + one_line(answer.errors)}, ""});
    }
    return;
  }
  for (auto worker = workers.rbegin(); worker != workers.rend(); ++worker) {
    (*worker)->at = SlurmWorker::At::queue;
    queue_.push_front(*worker);
  }
  for (SlurmWorker* worker : workers) {
    if (worker->wish != SlurmWorker::Wish::none) stop(*worker);
  }
  if (tasks_ > 1) {
    tasks_ = std::min<std::int64_t>(tasks_, static_cast<std::int64_t>(workers.size())) / 2;
    tasks_ = std::max<std::int64_t>(1, tasks_);
  }
  const auto pause = std::min<Clock::duration>(
      kLongestPause, options_.poll * (std::int64_t{1} << std::min(refusals_, 6)) / 2);
  if (refused_text_ != one_line(answer.errors)) {
    refused_text_ = one_line(answer.errors);
    note(fmt::format("sbatch takes no more jobs for now ({}): fewer are tried, later",
                     refused_text_));
  }
  try_again_in(pause);
}

void SlurmLauncher::try_again_in(Clock::duration pause) {
  submit_not_before_ = Clock::now() + pause;
  submit_timer_.expires_at(submit_not_before_);
  submit_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) flush();
  });
}

void SlurmLauncher::becomes_job(SlurmWorker& worker, const std::string& job) {
  worker.at = SlurmWorker::At::job;
  worker.launched.job = job;
  worker.launched.host.clear();
  worker.since = Clock::now();
  worker.missing = worker.unsettled = 0;
  if (worker.wish != SlurmWorker::Wish::none) tell_soon();
  if (changed_) changed_(worker.slot);
}

void SlurmLauncher::leave(SlurmWorker& worker) {
  const auto found = open_tasks_.find(worker.submission);
  if (found == open_tasks_.end() || --found->second > 0) return;
  remove_submission(options_.runs, found->first);
  open_tasks_.erase(found);
}

void SlurmLauncher::tell() {
  std::vector<SlurmWorker*> withdrawn;  // scancel
  std::vector<SlurmWorker*> stopped;    // SIGTERM
  std::vector<SlurmWorker*> killed;     // SIGKILL
  for (SlurmWorker* worker : workers_) {
    if (worker->at != SlurmWorker::At::job || worker->wish == SlurmWorker::Wish::none) continue;
    const bool runs = worker->ran && !worker->still;
    if (!runs) {
      // Not only once: it may have begun in between, or Slurm was silent.
      withdrawn.push_back(worker);
    } else if (!worker->told) {
      (worker->wish == SlurmWorker::Wish::stop ? stopped : killed).push_back(worker);
    } else if (worker->wish == SlurmWorker::Wish::kill) {
      withdrawn.push_back(worker);
    }
    worker->told = true;
  }
  const auto jobs = [](const std::vector<SlurmWorker*>& workers) {
    std::vector<std::string> ids;
    for (const SlurmWorker* worker : workers) ids.push_back(worker->launched.job);
    return ids;
  };
  scancel({}, jobs(withdrawn), withdrawn);
  scancel({"--signal=TERM", "--full"}, jobs(stopped), stopped);
  scancel({"--signal=KILL", "--full"}, jobs(killed), killed);
}

void SlurmLauncher::scancel(const std::vector<std::string>& options,
                            const std::vector<std::string>& jobs,
                            const std::vector<SlurmWorker*>& workers) {
  std::vector<Key> keys;
  for (SlurmWorker* worker : workers) keys.push_back(key_of(*worker));
  for (std::size_t first = 0; first < jobs.size(); first += kMostAtOnce) {
    const std::size_t last = std::min(jobs.size(), first + kMostAtOnce);
    std::vector<std::string> words = {"scancel"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), jobs.begin() + static_cast<std::ptrdiff_t>(first),
                 jobs.begin() + static_cast<std::ptrdiff_t>(last));
    commands_.run(std::move(words), kSlurmAnswerLimit, [this, keys](SlurmAnswer answer) {
      if (answer.exit_code == 0) return;
      // What did not arrive is said again with the next look.
      if (!answer.timed_out && refusal_from(answer.errors) != Refusal::silence) return;
      for (const Key& key : keys) {
        if (SlurmWorker* worker = find(key)) worker->told = false;
      }
    });
  }
}

void SlurmLauncher::finish(SlurmWorker& worker, WorkerEnd end) {
  worker.at = SlurmWorker::At::over;
  worker.still = false;
  if (end.last_lines.empty()) end.last_lines = worker.last_lines();
  forget(worker);
  if (!worker.submission.empty()) leave(worker);
  const auto on_end = std::move(worker.on_end);
  on_end(std::move(end));
}

std::string SlurmLauncher::one_line(std::string_view text) {
  std::string line(text.substr(0, text.find_last_not_of('\n') + 1));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

void SlurmLauncher::silent(const SlurmAnswer& answer) {
  if (std::exchange(silent_, true)) return;
  std::string why = answer.timed_out ? "no answer in time" : one_line(answer.errors);
  if (why.empty()) why = fmt::format("exit code {}", answer.exit_code);
  note(fmt::format("Slurm does not answer ({}): jobs go on, this waits", why));
}

std::optional<results::Launch> SlurmLauncher::noted(const std::filesystem::path& folder) const {
  const std::optional<JobLog> log = read_job_log(protocol::TrialDirectory(folder));
  if (!log || log->job.empty()) return std::nullopt;
  results::Launch launch;
  launch.job = log->job;
  launch.host = log->host;
  return launch;
}

std::int64_t SlurmLauncher::most_tasks() const {
  return std::clamp<std::int64_t>(std::min(limits_->max_array_size, limits_->max_job_count / 2), 1,
                                  kMostTasks);
}

void check_slurm_options(const SlurmOptions& options) {
  if (options.poll < std::chrono::milliseconds(100)) {
    throw std::invalid_argument("--slurm-poll must be at least 100ms");
  }
  if (!options.time.empty() && !is_slurm_time(options.time)) {
    throw std::invalid_argument(fmt::format(
        "--slurm-time is '{}', must be as sbatch takes it: minutes, hours:minutes:seconds or "
        "days-hours",
        options.time));
  }
  constexpr std::pair<std::string_view, char> kOwn[] = {
      {"array", 'a'},    {"job-name", 'J'}, {"output", 'o'}, {"error", 'e'},   {"chdir", 'D'},
      {"parsable", 0},   {"wait", 'W'},     {"wrap", 0},     {"test-only", 0}, {"comment", 0},
      {"clusters", 'M'}, {"quiet", 'Q'},    {"help", 'h'},   {"version", 'V'}, {"usage", 0},
  };
  for (const std::string& word : options.arguments) {
    if (!word.starts_with('-')) {
      throw std::invalid_argument(fmt::format(
          "--slurm-arg is '{}', must be one word that begins with -, such as --mem=8G", word));
    }
    for (const auto& [long_name, short_name] : kOwn) {
      if (!names(word, long_name, short_name)) continue;
      throw std::invalid_argument(
          fmt::format("--slurm-arg is '{}', which petlab itself decides", word));
    }
  }
}

std::unique_ptr<Launcher> make_slurm_launcher(asio::io_context& loop, SlurmOptions options) {
  check_slurm_options(options);
  if (options.runs.string().find('\n') != std::string::npos) {
    throw std::invalid_argument("--runs is a path with a line break, which Slurm jobs cannot have");
  }
  return std::make_unique<SlurmLauncher>(loop, std::move(options));
}

}  // namespace petlab::orchestrator
