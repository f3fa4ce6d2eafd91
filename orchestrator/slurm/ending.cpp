#include "orchestrator/slurm/ending.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "orchestrator/slurm/text.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kJobsPerScancel = 200;  // jobs per scancel

}  // namespace

void SlurmEnding::send_soon() {
  if (std::exchange(send_scheduled_, true)) return;
  boost::asio::post(context_.loop, [this] {
    send_scheduled_ = false;
    send();
  });
}

void SlurmEnding::send() {
  std::vector<SlurmJob*> withdrawn;  // scancel
  std::vector<SlurmJob*> stopped;    // SIGTERM
  std::vector<SlurmJob*> killed;     // SIGKILL
  for (SlurmJob* job : jobs_.all()) {
    if (job->at() != SlurmJob::At::job || !job->is_to_end()) continue;
    const bool runs = job->ran && !job->waiting;
    if (!runs) {
      // Repeat this on every call: the job may have started in between, or Slurm did not answer.
      withdrawn.push_back(job);
    } else if (!job->request_sent) {
      (job->requested == SlurmJob::Request::stop ? stopped : killed).push_back(job);
    } else if (job->requested == SlurmJob::Request::kill) {
      withdrawn.push_back(job);
    }
    job->request_sent = true;
  }
  const auto numbers = [](const std::vector<SlurmJob*>& jobs) {
    std::vector<std::string> all;
    for (const SlurmJob* job : jobs) all.push_back(job->launched.job);
    return all;
  };
  scancel({}, numbers(withdrawn), withdrawn);
  scancel({"--signal=TERM", "--full"}, numbers(stopped), stopped);
  scancel({"--signal=KILL", "--full"}, numbers(killed), killed);
}

void SlurmEnding::cancel_waiting(const std::string& name) {
  context_.run(
      {"scancel", "--state=PENDING", "--name=" + name, fmt::format("--user={}", ::geteuid())},
      kSlurmAnswerLimit, [](const base::ChildAnswer&) {});
}

void SlurmEnding::scancel(const std::vector<std::string>& options,
                          const std::vector<std::string>& numbers,
                          const std::vector<SlurmJob*>& jobs) {
  std::vector<SlurmJobs::Key> keys;
  for (SlurmJob* job : jobs) keys.push_back(SlurmJobs::key_of(*job));
  for (std::size_t first = 0; first < numbers.size(); first += kJobsPerScancel) {
    const std::size_t last = std::min(numbers.size(), first + kJobsPerScancel);
    std::vector<std::string> words = {"scancel"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), numbers.begin() + static_cast<std::ptrdiff_t>(first),
                 numbers.begin() + static_cast<std::ptrdiff_t>(last));
    context_.run(std::move(words), kSlurmAnswerLimit, [this, keys](base::ChildAnswer answer) {
      if (answer.exit_code == 0) return;
      // The next call sends undelivered requests again.
      if (!answer.timed_out() && refusal_from(answer.errors) != Refusal::silence) return;
      for (const SlurmJobs::Key& key : keys) {
        if (SlurmJob* job = jobs_.find(key)) job->request_sent = false;
      }
    });
  }
}

}  // namespace petlab::orchestrator
