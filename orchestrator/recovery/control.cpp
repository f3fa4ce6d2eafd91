#include "orchestrator/recovery/control.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/lock_file.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/recovery/recovery.h"
#include "results/decisions.h"

namespace petlab::orchestrator {
namespace {

results::TrialFacts facts_of(const DecisionWriter& to, const std::string& trial_id) {
  return to.read().trial_facts(std::vector<std::string>{trial_id}).front();
}

const results::AttemptFacts* open_attempt(const results::TrialFacts& facts) {
  if (facts.attempts.empty() || facts.attempts.back().outcome != results::Outcome::open) {
    return nullptr;
  }
  return &facts.attempts.back();
}

}  // namespace

std::string find_trial(const results::Reader& reader, const std::filesystem::path& database,
                       const std::string& text) {
  constexpr int kShown = 5;
  const std::vector<std::string> found = reader.trials_with_prefix(text, kShown + 1);
  if (found.size() == 1) return found.front();
  // A complete id may be a prefix of another id.
  if (std::find(found.begin(), found.end(), text) != found.end()) return text;
  if (found.empty()) {
    throw std::invalid_argument(fmt::format("trial {} is not in {} (petlab plan lists trial ids)",
                                            text, database.string()));
  }
  throw std::invalid_argument(fmt::format(
      "{} is a prefix of several trial ids; give a longer one: {}{}", text,
      fmt::join(found.begin(), found.begin() + std::min<std::ptrdiff_t>(kShown, std::ssize(found)),
                ", "),
      found.size() > kShown ? ", …" : ""));
}

DecisionResult cancel_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                            const std::string& trial_id, const HostIdentity& here, double time) {
  const results::TrialFacts facts = facts_of(to, trial_id);
  if (facts.result_attempt && facts.retried_after < *facts.result_attempt) {
    return {false,
            fmt::format("finished in attempt {}: its result is kept", *facts.result_attempt)};
  }
  if (facts.cancelled && facts.stopped_early.empty()) return {true, "is already cancelled"};
  decide(to, runs, trial_id, {protocol::Decision::What::cancel, 0, time});
  const results::AttemptFacts* open = open_attempt(facts);
  if (open != nullptr && liveness(open->begun, locks_folder(runs), here) != Liveness::dead) {
    return {true, fmt::format("cancelled; asked attempt {}, which runs {} ({}), to stop",
                              open->attempt.number, where_it_runs(*open), open->begun.device)};
  }
  return {true, "cancelled"};
}

DecisionResult retry_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                           const std::string& trial_id, bool declare_dead, const HostIdentity& here,
                           double time) {
  const results::TrialFacts facts = facts_of(to, trial_id);
  if (facts.result_attempt && !results::is_to_renew(facts)) {
    return {false, fmt::format(
                       "finished in attempt {}: nothing to retry (petlab run --rerun {} reruns it)",
                       *facts.result_attempt, trial_id)};
  }
  const std::int64_t latest = facts.attempts.empty() ? 0 : facts.attempts.back().attempt.number;
  std::string text = "will be retried";
  if (const results::AttemptFacts* open = open_attempt(facts)) {
    const Liveness alive = liveness(open->begun, locks_folder(runs), here);
    if (alive == Liveness::alive) {
      return {false,
              fmt::format("attempt {} runs {} ({}): its lock is held; stop it with petlab cancel",
                          latest, where_it_runs(*open), open->begun.device)};
    }
    if (alive == Liveness::unknown && !declare_dead) {
      return {false, fmt::format("attempt {} runs {}, according to its last record; if it has "
                                 "ended, pass --declare-dead",
                                 latest, where_it_runs(*open))};
    }
    if (declare_dead && to.store() == nullptr) {
      return {false, fmt::format("a running petlab holds {}, to which --declare-dead must write: "
                                 "wait until that run ends",
                                 to.database().string())};
    }
    if (declare_dead) {
      // Its worker may have finished before its host died.
      Ingest ingest(*to.store(), runs);
      conclude_orphan(*to.store(), ingest, runs, *open, "declared dead by the user", time,
                      results::Outcome::lost);
      const results::TrialFacts now = facts_of(to, trial_id);
      if (now.result_attempt && !results::is_to_renew(now)) {
        return {true, fmt::format("had finished in attempt {}", *now.result_attempt)};
      }
      for (const results::AttemptFacts& attempt : now.attempts) {
        if (attempt.attempt.number != latest) continue;
        text = fmt::format("will be retried; attempt {} is recorded as {}", latest,
                           to_string(attempt.outcome));
      }
    }
  }
  decide(to, runs, trial_id, {protocol::Decision::What::retry, latest, time});
  return {true, text};
}

DecisionResult discard_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                             const std::string& trial_id, const std::string& why, double time) {
  const results::TrialFacts facts = facts_of(to, trial_id);
  if (!facts.result_attempt) return {false, "has no result to discard"};
  // Discards all finished attempts, so that no other one takes the result's place.
  std::int64_t last = *facts.result_attempt;
  for (const results::AttemptFacts& attempt : facts.attempts) {
    if (attempt.outcome == results::Outcome::finished) last = attempt.attempt.number;
  }
  decide(to, runs, trial_id, {protocol::Decision::What::discard, last, time, why});
  return {true, fmt::format("the result of attempt {} no longer counts; the next run recomputes it",
                            *facts.result_attempt)};
}

DecisionResult hide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                          const std::string& trial_id, const std::string& why, double time) {
  const std::optional<results::Hiding> hidden =
      results::result_decisions(to.read(), trial_id).hidden;
  if (hidden && hidden->why == why) return {false, "is already hidden"};
  decide(to, runs, trial_id, {protocol::Decision::What::hide, 0, time, why});
  return {true, "is now excluded from reports and answers"};
}

DecisionResult unhide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                            const std::string& trial_id, double time) {
  if (!results::result_decisions(to.read(), trial_id).hidden) return {false, "is not hidden"};
  decide(to, runs, trial_id, {protocol::Decision::What::unhide, 0, time});
  return {true, "is included in reports and answers again"};
}

std::vector<RunningOrchestrator> running_orchestrators(const std::filesystem::path& runs,
                                                       const HostIdentity& here) {
  std::vector<RunningOrchestrator> found;
  for (const std::filesystem::path& entry : base::entries_of(locks_folder(runs))) {
    const std::string owner = entry.stem().string();
    const std::optional<OwnerName> name = owner_name_from(owner);
    // The name of a worker's lock continues with a dot and the slot after the owner's name.
    if (!name || owner.find('.') != std::string::npos || !LockFile::is_held(entry)) continue;
    std::ifstream in(entry);
    const nlohmann::json about = base::shallow_json_or_none(in);
    // Skips an orchestrator that has not filled its lock file yet, and a dead one whose lock is
    // held by the process that adopted its jobs.
    if (!about.is_object() || about.contains("adopted_by")) continue;
    RunningOrchestrator& running = found.emplace_back();
    running.owner = owner;
    running.pid = name->pid;
    running.host = about.value("host", "");
    running.database = about.value("database", "");
    running.sweep = about.value("sweep", "");
    running.reachable = about.value("boot_id", "") == here.boot_id &&
                        about.value("pid_namespace", "") == here.pid_namespace &&
                        process_start(static_cast<pid_t>(name->pid)) == name->start;
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.owner < b.owner; });
  return found;
}

bool ask_to_stop(const RunningOrchestrator& orchestrator, bool now) {
  const std::optional<OwnerName> name = owner_name_from(orchestrator.owner);
  if (!orchestrator.reachable || !name) return false;
  const base::ProcessHandle process = hold_process(static_cast<pid_t>(name->pid), name->start);
  return process && process.send(now ? SIGTERM : SIGUSR1);
}

}  // namespace petlab::orchestrator
