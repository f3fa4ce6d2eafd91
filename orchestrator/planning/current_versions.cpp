#include "orchestrator/planning/current_versions.h"

#include <algorithm>
#include <utility>

#include "protocol/trial_directory.h"
#include "sweeps/error.h"

namespace petlab::orchestrator {

CurrentVersions::CurrentVersions(std::filesystem::path runs, WorkerCommand worker,
                                 std::filesystem::path cache)
    : runs_(std::move(runs)), worker_(std::move(worker)), cache_(std::move(cache)) {}

void CurrentVersions::put_into(PlanContext& context, const results::TrialFacts& facts) {
  context.numerics.clear();
  context.data_digests.clear();
  const auto result = std::find_if(
      facts.attempts.begin(), facts.attempts.end(),
      [&](const auto& attempt) { return attempt.attempt.number == facts.result_attempt; });
  if (result == facts.attempts.end()) return;
  if (!worker_.empty() && !described_) described_ = describe_worker(worker_, kDescribeTimeout);
  if (described_ && described_->name == result->worker) context.numerics = described_->numerics;
  const std::string& sweep = result->begun.sweep;
  std::set<std::string>& looked_for = looked_for_[sweep];
  const bool all_known =
      std::all_of(result->data_digests.begin(), result->data_digests.end(),
                  [&](const auto& entry) { return looked_for.contains(entry.first); });
  if (!all_known) {
    const protocol::TrialDirectory directory(runs_, facts.trial_id, result->attempt.number);
    try {
      const protocol::TrialFile file = protocol::read_trial_file(directory.trial_json());
      std::map<std::string, sweeps::TaskDeclaration> tasks;
      for (const sweeps::TaskDeclaration& task : file.tasks) {
        if (looked_for.insert(task.name).second) tasks.emplace(task.name, task);
      }
      digests_[sweep].merge(known_data_digests(tasks, file.data_folders, cache_));
    } catch (const sweeps::Error&) {
      // The attempt's folder was moved, so nothing records where the data is.
    }
  }
  context.data_digests = digests_[sweep];
}

}  // namespace petlab::orchestrator
