#include "orchestrator/recovery/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/files.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"
#include "protocol/attempt_log.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

namespace {

// How long to wait before trying again to end a worker that survived SIGKILL, for example in an
// uninterruptible wait.
constexpr auto kTryAgain = std::chrono::minutes(1);

}  // namespace

bool conclude_orphan(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                     const results::AttemptFacts& facts, const std::string& why, double time,
                     std::optional<results::Outcome> outcome) {
  const protocol::TrialDirectory directory(runs, facts.attempt.trial_id, facts.attempt.number);
  const bool open = facts.outcome == results::Outcome::open;
  if (!std::filesystem::exists(directory.folder())) {
    if (!open) return false;
    // No other process creates the directory while the attempt is open in the database.
    remove_unfinished_directories(directory);
    fault_point("recover_swept");
    results::Batch batch = store.begin();
    batch.forget_attempt(facts.attempt);
    fault_point("recover_forget");
    batch.commit();
    return true;
  }
  restore_attempt_files(store.read(), directory, facts);
  if (!open && !ingest.is_cut(facts.attempt)) return false;
  // The worker had synced these events before the database got them, so only the name of their file
  // is lost.
  const bool synced = facts.checkpoint || facts.outcome == results::Outcome::finished ||
                      facts.outcome == results::Outcome::failed;
  if (!open && synced && !std::filesystem::exists(directory.events())) return false;
  const IngestUpdate update = ingest.read_again(facts.attempt);
  ingest.forget(facts.attempt);
  // Its orchestrator may have died before it could store what it had logged.
  const protocol::AttemptLog log = protocol::read_attempt_log(directory);
  if (!facts.launch && log.launch) {
    results::Batch batch = store.begin();
    batch.record_launch(facts.attempt, *log.launch);
    batch.commit();
  }
  fault_point("recover_ingested");
  const auto now = store.read().attempt_facts(facts.attempt.trial_id, facts.attempt.number);
  if (now && now->outcome != results::Outcome::open) return open || now->outcome != facts.outcome;
  // If no process saw how the worker ended, its trial is not blamed.
  results::Ending ending;
  ending.outcome = outcome          ? *outcome
                   : update.started ? results::Outcome::stopped
                                    : results::Outcome::never_started;
  ending.reason = why;
  ending.time = time;
  if (log.ending) ending = *log.ending;
  protocol::log_ending(directory, ending);  // also syncs an earlier line, which counts
  fault_point("recover_logged");
  results::Batch batch = store.begin();
  batch.record_ending(facts.attempt, ending);
  batch.commit();
  fault_point("recover_recorded");
  return true;
}

std::int64_t Recovery::settle_vanished(double time) {
  std::int64_t lost = 0;
  const std::vector<std::string> hosts = store_.vanished_hosts();
  if (hosts.empty()) return 0;
  for (const results::AttemptFacts& open : store_.read().open_attempts()) {
    if (in_queue(open.begun)) continue;
    if (std::find(hosts.begin(), hosts.end(), open.begun.host) == hosts.end()) continue;
    conclude_orphan(store_, ingest_, runs_, open,
                    fmt::format("{} did not renew its lease", open.begun.host), time,
                    results::Outcome::lost);
    ++lost;
  }
  store_.forget_vanished_hosts();
  return lost;
}

Recovered Recovery::step(DeadOwner::Time now, double time) {
  take_dead(now);
  Recovered recovered;
  for (auto entry = dying_.begin(); entry != dying_.end();) {
    const DeadOwner::Workers workers = entry->second.look(now);
    if (workers == DeadOwner::Workers::ending) {
      ++entry;
      continue;
    }
    if (workers == DeadOwner::Workers::gone) {
      conclude(entry->first, time, recovered);
      entry->second.remove_files();
    }
    lasting_.erase(entry->first);
    if (workers == DeadOwner::Workers::lasting) lasting_[entry->first] = now;
    entry = dying_.erase(entry);
  }
  return recovered;
}

void Recovery::conclude(const std::string& owner, double time, Recovered& recovered) {
  // Reads the attempts again: before this process got the lock, another may have cleaned up, or the
  // owner may have added attempts.
  for (const results::AttemptFacts& attempt : store_.read().attempts_of_owner(owner)) {
    // Unsynced data of a worker is lost only if the machine went down, too.
    const bool rebooted = attempt.begun.boot_id != here_.boot_id;
    if (attempt.outcome != results::Outcome::open && !rebooted) continue;
    if (conclude_orphan(store_, ingest_, runs_, attempt,
                        fmt::format("its orchestrator ({}) died", owner), time)) {
      ++recovered.attempts;
    }
  }
  fault_point("recover_done");
  ++recovered.owners;
}

void Recovery::take_dead(DeadOwner::Time now) {
  const std::filesystem::path locks = locks_folder(runs_);
  std::map<std::string, std::vector<results::AttemptFacts>> owners;
  std::set<std::string> in_queues;  // their jobs keep running: orchestrator/recovery/adoption.h
  for (results::AttemptFacts& open : store_.read().open_attempts()) {
    if (in_queue(open.begun)) {
      in_queues.insert(open.begun.owner);
    } else {
      owners[open.begun.owner].push_back(std::move(open));
    }
  }
  // Adds the owners of locks without open attempts: they died before their first attempt or while
  // cleaning up, or an error ended them before they could remove the locks of their workers.
  for (const std::filesystem::path& entry : base::entries_of(locks)) {
    const std::string file = entry.filename().string();
    const std::string name = file.substr(0, file.find('.'));
    if (!owner_name_from(name) || owners.contains(name) || in_queues.contains(name)) continue;
    const std::optional<HostIdentity> host = lock_host(owner_lock(locks, name));
    const bool foreign = host && host->host != here_.host && host->boot_id != here_.boot_id;
    if (!foreign) owners.try_emplace(name);
  }
  for (const auto& [owner, attempts] : owners) {
    if (dying_.contains(owner)) continue;
    const auto lasting = lasting_.find(owner);
    if (lasting != lasting_.end() && now - lasting->second < kTryAgain) continue;
    protocol::AttemptBegun begun;
    if (attempts.empty()) {
      begun.owner = owner;
      begun.host = here_.host;
      begun.boot_id = here_.boot_id;
      begun.pid_namespace = here_.pid_namespace;
    } else {
      begun = attempts.front().begun;
    }
    if (liveness(begun, locks, here_) == Liveness::unknown) continue;
    if (auto dead = DeadOwner::take(begun, locks, here_, grace_, now)) {
      dying_.emplace(owner, std::move(*dead));
    }
  }
}

}  // namespace petlab::orchestrator
