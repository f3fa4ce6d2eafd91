#include "orchestrator/records/decide.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "base/files.h"
#include "orchestrator/host/error.h"
#include "orchestrator/records/inbox.h"
#include "protocol/trial_directory.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

using protocol::Decision;

namespace {

std::vector<results::RemarkSubject> subjects_of(
    const std::vector<std::pair<std::string, Decision>>& decisions) {
  std::vector<results::RemarkSubject> subjects;
  for (const auto& [trial_id, decision] : decisions) subjects.push_back({trial_id, ""});
  return subjects;
}

void store_decision(results::Batch& batch, const std::string& trial_id, const Decision& decision) {
  switch (decision.what) {
    case Decision::What::cancel:
    case Decision::What::uncancel:
      results::set_cancelled(batch, trial_id, decision.what == Decision::What::cancel);
      return;
    case Decision::What::retry:
      results::allow_retry(batch, trial_id, decision.after_attempt);
      results::set_cancelled(batch, trial_id, false);
      return;
    case Decision::What::rerun:
    case Decision::What::discard:
      results::renew(batch, trial_id,
                     {decision.after_attempt, decision.what == Decision::What::discard,
                      decision.why, decision.time});
      results::set_cancelled(batch, trial_id, false);
      return;
    case Decision::What::hide:
      results::set_hidden(batch, trial_id, results::Hiding{decision.why, decision.time});
      return;
    case Decision::What::unhide:
      results::set_hidden(batch, trial_id, std::nullopt);
      return;
    case Decision::What::stop_early:
      results::stop_early(
          batch, trial_id,
          {decision.after_attempt, decision.after_step, decision.why, decision.time});
      return;
  }
}

}  // namespace

void store_decisions(results::Batch& batch, const std::string& trial_id,
                     const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) store_decision(batch, trial_id, decision);
}

void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::string& trial_id, const Decision& decision) {
  // Check first: a mistyped id must not create a folder.
  if (!to.read().trial(trial_id)) {
    throw std::invalid_argument(
        fmt::format("trial {} is not in {}", trial_id, to.database().string()));
  }
  decide(to, runs, {{trial_id, decision}});
}

std::filesystem::path log_decisions(
    const std::filesystem::path& runs,
    const std::vector<std::pair<std::string, Decision>>& decisions) {
  std::filesystem::path post = post_to_inbox(runs, subjects_of(decisions));
  const bool one = decisions.size() == 1;
  for (const auto& [trial_id, decision] : decisions) {
    const std::filesystem::path folder = protocol::trial_folder(runs, trial_id);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
    protocol::append_decision(runs, trial_id, decision, one);
  }
  if (one) {
    base::sync_folder(protocol::trial_folder(runs, decisions.front().first));
    base::sync_folder(runs);
  } else {
    base::sync_file_system(runs);
  }
  return post;
}

void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::vector<std::pair<std::string, Decision>>& decisions) {
  if (decisions.empty()) return;
  const std::filesystem::path post = log_decisions(runs, decisions);
  if (to.store() == nullptr) {
    post_to_inbox(runs, subjects_of(decisions));
    return;
  }
  results::Batch batch = to.store()->begin();
  for (const auto& [trial_id, decision] : decisions) {
    store_decisions(batch, trial_id, protocol::read_decisions(runs, trial_id));
  }
  batch.commit();
  std::error_code ignored;
  std::filesystem::remove(post, ignored);
}

}  // namespace petlab::orchestrator
