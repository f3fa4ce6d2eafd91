#include "orchestrator/recovery.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "orchestrator/attempt_log.h"
#include "orchestrator/fault_point.h"
#include "sweeps/files.h"
#include "sweeps/trial_directory.h"

namespace petlab::orchestrator {

void conclude_orphan(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                     const results::AttemptFacts& facts, const std::string& why, double time) {
  const sweeps::TrialDirectory directory(runs, facts.attempt.trial_id, facts.attempt.number);
  if (!std::filesystem::exists(directory.folder())) {
    // While the attempt is open in the database nobody else makes its directory.
    remove_unfinished_directories(directory);
    fault_point("recover_swept");
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
  ending.reason = why;
  ending.time = time;
  log_ending(directory, ending);
  fault_point("recover_logged");
  results::Batch batch = store.begin();
  batch.record_ending(facts.attempt, ending);
  batch.commit();
  fault_point("recover_recorded");
}

Recovered recover(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                  const HostIdentity& here, std::chrono::milliseconds grace, double time) {
  Recovered recovered;
  const std::filesystem::path locks = locks_folder(runs);
  std::map<std::string, std::vector<results::AttemptFacts>> owners;
  std::set<std::string> in_queues;  // their jobs go on: orchestrator/adoption.h
  for (results::AttemptFacts& open : store.read().open_attempts()) {
    if (in_queue(open.begun)) {
      in_queues.insert(open.begun.owner);
    } else {
      owners[open.begun.owner].push_back(std::move(open));
    }
  }
  // Locks whose orchestrator died with no attempt open: before its first, or while clearing up.
  for (const std::filesystem::path& entry : sweeps::entries_of(locks)) {
    const std::string name = entry.stem().string();
    const std::optional<HostIdentity> host = lock_host(entry);
    const bool foreign = host && host->host != here.host && host->boot_id != here.boot_id;
    if (owner_name_from(name) && name.find('.') == std::string::npos && !foreign &&
        !in_queues.contains(name)) {
      owners.try_emplace(name);
    }
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
      conclude_orphan(store, ingest, runs, open, fmt::format("its orchestrator ({}) died", owner),
                      time);
      ++recovered.attempts;
    }
    fault_point("recover_done");
    dead->remove_files();
    ++recovered.owners;
  }
  return recovered;
}

}  // namespace petlab::orchestrator
