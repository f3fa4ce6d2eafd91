#include "orchestrator/slurm/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/invariant.h"
#include "base/programs.h"
#include "orchestrator/slurm/submission.h"

namespace petlab::orchestrator {
namespace {

// A job ends by itself after its trial. One that hangs is killed after this time.
constexpr auto kClosing = std::chrono::minutes(1);

std::int64_t next_serial() {
  static std::int64_t last = 0;
  return ++last;
}

bool may_follow(SlurmJob::At from, SlurmJob::At to) {
  using At = SlurmJob::At;
  switch (from) {
    case At::queued:
      return to == At::submitting || to == At::job || to == At::over;
    case At::submitting:
      return to != At::submitting;
    case At::lost:
      return to == At::job || to == At::queued;
    case At::job:
      return to == At::job || to == At::over;
    case At::over:
      return false;
  }
  return false;
}

}  // namespace

SlurmContext::SlurmContext(boost::asio::io_context& io, SlurmOptions slurm_options)
    : loop(io), options(std::move(slurm_options)), commands(io) {
  const char* path = std::getenv("PATH");
  for (const char* program : kSlurmPrograms) {
    if (!base::find_program(program, path ? path : "").empty()) continue;
    throw std::invalid_argument(fmt::format("--launcher is slurm, but {} is not on PATH", program));
  }
  has_sacct = !base::find_program("sacct", path ? path : "").empty();
}

void SlurmContext::note_no_answer(const base::ChildAnswer& answer) {
  if (std::exchange(no_answer_, true)) return;
  std::string why = answer.timed_out() ? "no answer in time" : in_one_line(answer.errors);
  if (why.empty()) why = answer.problem;
  note(fmt::format("Slurm does not answer ({}): jobs keep running, petlab waits", why));
}

void SlurmContext::note_answer() {
  if (std::exchange(no_answer_, false)) note("Slurm answers again");
}

std::string SlurmContext::excluded_hosts() const {
  std::string hosts;
  const auto add = [&hosts](std::string_view more) {
    hosts += (hosts.empty() ? "" : ",") + std::string(more);
  };
  for (const std::string& word : options.arguments) {
    if (word.starts_with("--exclude=")) add(std::string_view(word).substr(10));
    if (word.starts_with("-x") && word.size() > 2) add(std::string_view(word).substr(2));
  }
  for (const std::string& host : disabled) add(host);
  return hosts;
}

std::string in_one_line(std::string_view text) {
  std::string line(text.substr(0, text.find_last_not_of('\n') + 1));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

SlurmJob::SlurmJob(SlurmJobs& jobs, std::string slot_name, std::function<void(WorkerEnd)> when_over)
    : serial(next_serial()),
      slot(std::move(slot_name)),
      on_end(std::move(when_over)),
      jobs_(jobs) {}

SlurmJob::~SlurmJob() { jobs_.forget(*this); }

void SlurmJob::become(At at) {
  constexpr std::string_view names[] = {"queued", "submitting", "lost", "job", "over"};
  const auto name = [&](At one) { return names[static_cast<std::size_t>(one)]; };
  PETLAB_INVARIANT(may_follow(at_, at),
                   fmt::format("the job of {} goes from {} to {}", slot, name(at_), name(at)));
  at_ = at;
}

TaskFiles SlurmJob::files() const { return {jobs_.context().options.runs, submission, task}; }

std::optional<JobLog> SlurmJob::record() const {
  if (submission.empty()) return std::nullopt;
  return read_job_log(files().record);
}

void SlurmJob::begin(const std::string& host) {
  waiting = false;
  if (!std::exchange(ran, true)) watched.since = SlurmClock::now();
  if (!host.empty()) launched.host = host;
}

void SlurmJob::submit(const std::vector<std::filesystem::path>& attempt_folders) {
  PETLAB_INVARIANT(at_ == At::job && !closing_since_,
                   fmt::format("the job of {} gets an attempt {}", slot,
                               at_ == At::job ? "after its end" : "before Slurm has it"));
  has_attempts = true;
  append_to_inbox(files().inbox, inbox_line(attempt_folders));
}

// A job that still waits, without attempts, would begin only to end.
void SlurmJob::close() {
  if (closing_since_ || at_ == At::over) return;
  closing_since_ = SlurmClock::now();
  if (!ran && !has_attempts) return request(Request::kill);
  append_to_inbox(files().inbox, kInboxEnd);
}

std::string SlurmJob::last_lines(const std::filesystem::path& log) {
  return submission.empty() ? std::string() : job_last_lines(log, files().output);
}

void SlurmJob::stop() {
  if (at_ != At::over && requested == Request::none) request(Request::stop);
}

void SlurmJob::kill() {
  if (at_ == At::over || requested == Request::kill) return;
  const bool may_end_by_itself =
      closing_since_ && (serves_others || SlurmClock::now() - *closing_since_ < kClosing);
  if (requested == Request::none && may_end_by_itself && ran) return;
  request(Request::kill);
}

void SlurmJob::request(Request wanted) {
  requested = wanted;
  request_sent = false;
  jobs_.request_changed(*this);
}

bool SlurmJob::has_written() {
  if (log_.empty()) return false;
  std::error_code error;
  const auto size = std::filesystem::file_size(log_.parent_path() / "events.jsonl", error);
  const std::int64_t events = error ? -1 : static_cast<std::int64_t>(size);
  return std::exchange(events_size_, events) != events;
}

SlurmJob* SlurmJobs::find(const Key& key) const {
  return jobs_.contains(key.first) && key.first->serial == key.second ? key.first : nullptr;
}

std::unique_ptr<SlurmJob> SlurmJobs::make(const std::string& slot,
                                          std::function<void(WorkerEnd)> on_end) {
  auto job = std::make_unique<SlurmJob>(*this, slot, std::move(on_end));
  jobs_.insert(job.get());
  return job;
}

void SlurmJobs::becomes_job(SlurmJob& job, const std::string& number) {
  job.become(SlurmJob::At::job);
  job.launched.job = number;
  job.launched.host.clear();
  job.watched.since = SlurmClock::now();
  job.watched.missing = job.watched.unsettled = 0;
  if (job.is_to_end()) request_changed(job);
}

void SlurmJobs::leave(SlurmJob& job) {
  const auto found = open_tasks_.find(job.submission);
  if (found == open_tasks_.end() || --found->second > 0) return;
  remove_submission(context_.options.runs, found->first);
  open_tasks_.erase(found);
}

void SlurmJobs::forget(SlurmJob& job) {
  on_forget(job);
  jobs_.erase(&job);
}

void SlurmJobs::finish(SlurmJob& job, WorkerEnd end) {
  if (job.at() != SlurmJob::At::over) job.become(SlurmJob::At::over);
  job.waiting = false;
  if (end.last_lines.empty()) end.last_lines = job.last_lines();
  forget(job);
  if (!job.submission.empty()) leave(job);
  const auto on_end = std::move(job.on_end);
  on_end(std::move(end));
}

void SlurmJobs::finish_soon(SlurmJob& job, const std::string& why) {
  job.become(SlurmJob::At::over);
  boost::asio::post(context_.loop, [this, key = key_of(job), why] {
    if (SlurmJob* found = find(key)) finish(*found, {TakenAway{why}, ""});
  });
}

}  // namespace petlab::orchestrator
