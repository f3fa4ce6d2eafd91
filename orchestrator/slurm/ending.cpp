#include "orchestrator/slurm/ending.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/child.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/slurm/command.h"
#include "orchestrator/slurm/submission.h"
#include "orchestrator/slurm/text.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kJobsPerScancel = 200;  // jobs per scancel
constexpr auto kWait = std::chrono::seconds(10);

}  // namespace

void SlurmEnding::send_soon() {
  if (std::exchange(send_scheduled_, true)) return;
  boost::asio::post(context_.loop, [this] {
    send_scheduled_ = false;
    send();
  });
}

void SlurmEnding::send() {
  std::set<std::string> needed;  // jobs with a worker that is not to end
  for (const SlurmJob* job : jobs_.all()) {
    if (job->at() == SlurmJob::At::job && !job->is_to_end()) needed.insert(job->launched.job);
  }
  Requests withdrawn;  // scancel
  Requests stopped;    // SIGTERM
  Requests killed;     // SIGKILL
  Requests stopped_steps;
  Requests killed_steps;
  for (SlurmJob* job : std::vector<SlurmJob*>(jobs_.all().begin(), jobs_.all().end())) {
    if (job->at() != SlurmJob::At::job || !job->is_to_end()) continue;
    const bool runs = job->ran && !job->waiting;
    std::string number = job->launched.job;
    if (job->shares_job && (runs || needed.contains(number))) {
      if (!job->ran && withdraw(job->files().record, wall_clock_seconds())) {
        jobs_.finish_soon(*job, "withdrawn before its worker began");
        continue;
      }
      const std::optional<JobLog> log = job->record();
      if (!log || log->step.empty()) continue;  // the record is about to be written
      number += "." + log->step;
    }
    const bool is_step = number != job->launched.job;
    Requests* requests = nullptr;
    if (!runs) {
      // Repeat this on every call: the job may have started in between, or Slurm did not answer.
      requests = &withdrawn;
    } else if (!job->request_sent && job->requested == SlurmJob::Request::stop) {
      requests = is_step ? &stopped_steps : &stopped;
    } else if (!job->request_sent) {
      requests = is_step ? &killed_steps : &killed;
    } else if (job->requested == SlurmJob::Request::kill) {
      requests = &withdrawn;
    }
    job->request_sent = true;
    if (requests == nullptr) continue;
    requests->numbers.push_back(std::move(number));
    requests->jobs.push_back(SlurmJobs::key_of(*job));
  }
  scancel({}, withdrawn);
  // Without --full, the batch step gets no signal.
  scancel({"--signal=TERM", "--full"}, stopped);
  scancel({"--signal=KILL", "--full"}, killed);
  scancel({"--signal=TERM"}, stopped_steps);
  scancel({"--signal=KILL"}, killed_steps);
}

void SlurmEnding::cancel_waiting(const std::string& name) {
  if (silent_) return;
  silent_ = base::run_child(slurm_command({"scancel", "--state=PENDING", "--name=" + name,
                                           fmt::format("--user={}", ::geteuid())},
                                          kWait, context_.options.cluster))
                .timed_out();
}

void SlurmEnding::scancel(const std::vector<std::string>& options, const Requests& requests) {
  const std::vector<std::string>& numbers = requests.numbers;
  for (std::size_t first = 0; first < numbers.size(); first += kJobsPerScancel) {
    const std::size_t last = std::min(numbers.size(), first + kJobsPerScancel);
    std::vector<std::string> words = {"scancel"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), numbers.begin() + static_cast<std::ptrdiff_t>(first),
                 numbers.begin() + static_cast<std::ptrdiff_t>(last));
    context_.run(std::move(words), kSlurmAnswerLimit,
                 [this, keys = requests.jobs](base::ChildAnswer answer) {
                   if (answer.exit_code == 0) return;
                   // The next call sends undelivered requests again.
                   if (!answer.timed_out() && refusal_from(answer.errors) != Refusal::silence)
                     return;
                   for (const SlurmJobs::Key& key : keys) {
                     if (SlurmJob* job = jobs_.find(key)) job->request_sent = false;
                   }
                 });
  }
}

}  // namespace petlab::orchestrator
