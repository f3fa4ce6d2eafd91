#include "orchestrator/recovery.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "orchestrator/attempt_log.h"
#include "orchestrator/fault_point.h"
#include "sweeps/trial_directory.h"

namespace petlab::orchestrator {
namespace {

void conclude(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
              const results::AttemptFacts& facts, double time) {
  const sweeps::TrialDirectory directory(runs, facts.attempt.trial_id, facts.attempt.number);
  if (!std::filesystem::exists(directory.folder())) {
    results::Batch batch = store.begin();
    batch.forget_attempt(facts.attempt);
    fault_point("recover_forget");
    batch.commit();
    return;
  }
  const IngestUpdate update = ingest.read_all(facts.attempt);
  ingest.forget(facts.attempt);
  fault_point("recover_ingested");
  if (update.over) return;
  const bool started = facts.started_at || update.started;
  // Nobody saw how the worker ended, so its trial is not blamed.
  results::Ending ending;
  ending.outcome = started ? results::Outcome::stopped : results::Outcome::never_started;
  ending.reason = fmt::format("its orchestrator ({}) died", facts.begun.owner);
  ending.time = time;
  log_ending(directory, ending);
  fault_point("recover_logged");
  results::Batch batch = store.begin();
  batch.record_ending(facts.attempt, ending);
  batch.commit();
  fault_point("recover_recorded");
}

}  // namespace

Recovered recover(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                  const HostIdentity& here, std::chrono::milliseconds grace, double time) {
  Recovered recovered;
  const std::filesystem::path locks = locks_folder(runs);
  std::map<std::string, std::vector<results::AttemptFacts>> owners;
  for (results::AttemptFacts& open : store.read().open_attempts()) {
    owners[open.begun.owner].push_back(std::move(open));
  }
  // Locks whose orchestrator died with no attempt open: before its first, or while clearing up.
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(locks, error)) {
    const std::string name = entry.path().stem().string();
    if (owner_name_from(name) && name.find('.') == std::string::npos) owners.try_emplace(name);
  }
  for (const auto& [owner, attempts] : owners) {
    results::NewAttempt begun;
    if (attempts.empty()) {
      begun.owner = owner;
      begun.host = here.host;
      begun.boot_id = here.boot_id;
      begun.pid_namespace = here.pid_namespace;
    } else {
      begun = attempts.front().begun;
    }
    if (liveness(begun, locks, here) == Liveness::unknown) continue;
    std::optional<DeadOwner> dead = DeadOwner::take(begun, locks, here, grace);
    if (!dead) continue;
    // Between the look above and the lock another may have cleared up, or the owner made more.
    for (const results::AttemptFacts& open : store.read().open_attempts()) {
      if (open.begun.owner != owner) continue;
      conclude(store, ingest, runs, open, time);
      ++recovered.attempts;
    }
    fault_point("recover_done");
    dead->remove_files();
    ++recovered.owners;
  }
  return recovered;
}

}  // namespace petlab::orchestrator
