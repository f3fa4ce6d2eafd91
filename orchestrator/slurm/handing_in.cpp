#include "orchestrator/slurm/handing_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"

namespace petlab::orchestrator {
namespace {

// sbatch itself retries for two minutes while the cluster has too many jobs.
constexpr auto kSubmitLimit = std::chrono::minutes(5);
constexpr std::int64_t kMostOfArray = 1000;
constexpr auto kLongestPause = std::chrono::seconds(60);
constexpr int kRefusalsAfterSuccess = 8;

// --slurm-gpus: "2", "a100" (one GPU of that type) or "a100:2". A type may begin with a digit.
struct Gpus {
  std::string type;
  std::int64_t count = 0;
};

Gpus parse_gpus(const std::string& option) {
  if (option.empty()) return {};
  const std::size_t digits = option.rfind(':') + 1;  // 0 without a colon
  const char* const end = option.data() + option.size();
  std::int64_t count = 0;
  const auto parsed = std::from_chars(option.data() + digits, end, count);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {option, 1};
  return {option.substr(0, std::max<std::size_t>(digits, 1) - 1), count};
}

// The --slurm-gpus of a worker whose trials need this many GPUs (1: as --slurm-gpus says), times
// `workers`: "a100:1" for four workers -> "a100:4".
std::string gpus_text(const std::string& option, std::int64_t gpus, std::int64_t workers) {
  auto [type, count] = parse_gpus(option);
  if (gpus > 1) count = gpus;
  if (count == 0) return {};
  return fmt::format("{}{}{}", type, type.empty() ? "" : ":", count * workers);
}

}  // namespace

void SlurmHandingIn::withdraw_queued(SlurmJob& job) {
  std::erase(queue_, &job);
  jobs_.finish_soon(job, "withdrawn before it was submitted to Slurm");
}

void SlurmHandingIn::forget(SlurmJob& job) {
  std::erase(queue_, &job);
  std::erase(in_sbatch_, &job);
}

void SlurmHandingIn::flush() {
  if (busy_ || queue_.empty() || SlurmClock::now() < not_before_) return;
  if (!limits_) {
    ask_limits();
    return;
  }
  submit();
}

std::string SlurmHandingIn::number_in(const std::string& array, std::int64_t array_task) const {
  return limits_ && limits_->max_array_size == 0 ? array : fmt::format("{}_{}", array, array_task);
}

void SlurmHandingIn::ask_limits() {
  busy_ = true;
  context_.run({"scontrol", "show", "config"}, kSlurmAnswerLimit, [this](base::ChildAnswer answer) {
    busy_ = false;
    if (answer.exit_code == 0) {
      limits_ = parse_config(answer.output);
      most_jobs_ = most_jobs();
      context_.note_answer();
      flush();
    } else {
      context_.note_no_answer(answer);
      try_again_in(context_.options.poll);
    }
  });
}

std::int64_t SlurmHandingIn::most_jobs() const {
  return std::clamp<std::int64_t>(std::min(limits_->max_array_size, limits_->max_job_count / 2), 1,
                                  kMostOfArray);
}

std::vector<std::string> SlurmHandingIn::sbatch_words(const Submission& submission,
                                                      const std::string& gpus) const {
  const SlurmOptions& options = context_.options;
  const std::filesystem::path folder = submission_folder(options.runs, submission.id);
  const std::int64_t workers = submission.tasks_of_job;
  std::vector<std::string> words = {"sbatch", "--nodes=1", fmt::format("--ntasks={}", workers),
                                    fmt::format("--cpus-per-task={}", options.threads)};
  if (options.node_workers > 0) words.push_back("--exclusive");
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", option, value));
  };
  add("partition", options.partition);
  add("account", options.account);
  add("gres", gpus.empty() ? "" : "gpu:" + gpus);
  add("time", options.time);
  // A requeued job would find its task begun. petlab submits a new job instead.
  words.push_back("--no-requeue");
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  // sbatch uses only the last --exclude, so this one includes the user's hosts.
  if (!context_.disabled.empty()) add("exclude", context_.excluded_hosts());
  const bool arrays = limits_->max_array_size > 0;
  if (arrays) words.push_back(fmt::format("--array=0-{}", submission.jobs() - 1));
  words.push_back("--parsable");
  words.push_back("--job-name=" + submission.id);
  words.push_back("--comment=petlab run of sweep " + options.sweep);
  words.push_back("--chdir=" + folder.string());
  // With several workers, each has an output of its own.
  const std::string output =
      fmt::format("{}{}.out", workers > 1 ? "job-" : "", arrays ? "%a" : "0");
  words.push_back("--output=" + (folder / output).string());
  words.push_back((folder / "job.sh").string());
  return words;
}

// A node for N workers has N times their GPUs, so fewer workers fit if their trials need more.
std::int64_t SlurmHandingIn::workers_of_job(std::int64_t gpus) const {
  const std::int64_t most = std::max(1, context_.options.node_workers);
  if (gpus == 1) return most;
  const std::int64_t usual = std::max<std::int64_t>(1, parse_gpus(context_.options.gpus).count);
  return std::max<std::int64_t>(1, most * usual / gpus);
}

// Returns workers with the same number of GPUs; none: no worker may be submitted now. While other
// jobs run, their workers take the trials, so no job takes a node for only a part of the workers
// that fit there.
SlurmHandingIn::Next SlurmHandingIn::next() const {
  std::set<std::int64_t> looked_at;
  for (const SlurmJob* first : queue_) {
    const std::int64_t gpus = first->gpus;
    if (!looked_at.insert(gpus).second) continue;
    const std::int64_t queued = std::count_if(
        queue_.begin(), queue_.end(), [gpus](const SlurmJob* job) { return job->gpus == gpus; });
    const std::int64_t of_job = workers_of_job(gpus);
    const bool others_work =
        !context_.options.detach && !context_.options.one_trial_a_job &&
        std::any_of(jobs_.all().begin(), jobs_.all().end(), [gpus](const SlurmJob* job) {
          return job->at() == SlurmJob::At::job && job->shares_job && job->ran && !job->waiting &&
                 !job->is_closed() && !job->is_to_end() && job->gpus == gpus;
        });
    const std::int64_t tasks =
        std::min(most_jobs_ * of_job, others_work ? queued - queued % of_job : queued);
    if (tasks > 0) return {gpus, tasks};
  }
  return {};
}

void SlurmHandingIn::submit() {
  const SlurmOptions& options = context_.options;
  Submission submission;
  const auto [gpus, tasks] = next();
  if (tasks == 0) return;
  submission.tasks = tasks;
  submission.tasks_of_job = workers_of_job(gpus);
  submission.id = submission_id(options.owner, ++submissions_);
  for (std::int64_t task = 0; task < submission.tasks; ++task) {
    const auto place = std::find_if(queue_.begin(), queue_.end(),
                                    [gpus = gpus](const auto* job) { return job->gpus == gpus; });
    SlurmJob* job = *place;
    queue_.erase(place);
    if (!job->submission.empty()) jobs_.leave(*job);
    job->become(SlurmJob::At::submitting);
    job->submission = submission.id;
    job->task = task;
    job->array_task = task / submission.tasks_of_job;
    job->shares_job = submission.tasks_of_job > 1;
    in_sbatch_.push_back(job);
  }
  jobs_.open_tasks(submission.id, submission.tasks);
  write_submission(options.runs, submission,
                   {options.worker, options.threads, gpus_text(options.gpus, gpus, 1),
                    options.one_trial_a_job, options.idle, options.setup});
  fault_point("submission_written");
  busy_ = true;
  const std::string id = submission.id;
  context_.run(sbatch_words(submission, gpus_text(options.gpus, gpus, submission.tasks_of_job)),
               kSubmitLimit,
               [this, id](base::ChildAnswer answer) { submitted(id, std::move(answer)); });
}

void SlurmHandingIn::submitted(const std::string& id, base::ChildAnswer answer) {
  fault_point("submitted");
  busy_ = false;
  const std::vector<SlurmJob*> jobs = std::exchange(in_sbatch_, {});
  std::string number;
  if (answer.exit_code == 0) {
    try {
      number = parse_submission(answer.output);
    } catch (const Error& error) {
      answer.errors = error.what();
    }
  }
  if (!number.empty()) return accepted(jobs, number);
  const bool unclear = answer.timed_out() || answer.exit_code <= 0 ||
                       refusal_from(answer.errors) == Refusal::silence;
  if (!unclear) return refused(jobs, answer.errors);
  // Slurm may have created the jobs. The launcher looks for them by name.
  context_.note_no_answer(answer);
  for (SlurmJob* job : jobs) job->become(SlurmJob::At::lost);
  not_before_ = SlurmClock::now() + context_.options.poll;
  lost(id, jobs);
}

void SlurmHandingIn::accepted(const std::vector<SlurmJob*>& jobs, const std::string& number) {
  refusals_ = 0;
  any_accepted_ = true;
  most_jobs_ = std::min(most_jobs(), most_jobs_ * 2);
  if (!jobs.empty()) {
    const std::string& cluster = context_.options.cluster;
    write_number(context_.options.runs, jobs.front()->submission,
                 cluster.empty() ? number : number + ";" + cluster);
  }
  for (SlurmJob* job : jobs) jobs_.becomes_job(*job, number_in(number, job->array_task));
  watch();
  flush();
}

void SlurmHandingIn::refused(const std::vector<SlurmJob*>& jobs, const std::string& errors) {
  for (SlurmJob* job : jobs) jobs_.leave(*job);
  ++refusals_;
  const std::string why = in_one_line(errors);
  const bool limit = refusal_from(errors) == Refusal::limit;
  if (!limit && (!any_accepted_ || refusals_ > kRefusalsAfterSuccess)) {
    for (SlurmJob* job : jobs) jobs_.finish(*job, {Refused{"sbatch: " + why}, ""});
    return;
  }
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    (*job)->become(SlurmJob::At::queued);
    queue_.push_front(*job);
  }
  for (SlurmJob* job : jobs) {
    if (job->is_to_end()) withdraw_queued(*job);
  }
  if (most_jobs_ > 1 && !jobs.empty()) {
    most_jobs_ = std::max<std::int64_t>(1, std::min(most_jobs_, jobs.back()->array_task + 1) / 2);
  }
  if (std::exchange(refused_text_, why) != why) {
    context_.note(fmt::format("sbatch rejects more jobs ({}); retrying later with fewer", why));
  }
  try_again_in(std::min<SlurmClock::duration>(
      kLongestPause, context_.options.poll * (std::int64_t{1} << std::min(refusals_, 6)) / 2));
}

void SlurmHandingIn::try_again_in(SlurmClock::duration pause) {
  not_before_ = SlurmClock::now() + pause;
  timer_.expires_at(not_before_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) flush();
  });
}

}  // namespace petlab::orchestrator
