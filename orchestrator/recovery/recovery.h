#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/records/ingest.h"
#include "orchestrator/recovery/evidence.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What Recovery::step() has cleaned up.
struct Recovered {
  std::int64_t owners = 0;    // dead orchestrators
  std::int64_t attempts = 0;  // their attempts that are over now
};

/// Cleans up after dead orchestrators of this machine: ends the workers that they left, reads what
/// these have written, and records the end of every open attempt. Attempts of living orchestrators,
/// of other hosts and in queues (Slurm) are left alone. Several orchestrators may do this at the
/// same time: each dead one is handled by one of them. What is incomplete when this object is
/// destroyed is left for another.
class Recovery {
 public:
  /// The references must outlive it. `grace`: as RunOptions::grace.
  Recovery(results::Store& store, Ingest& ingest, std::filesystem::path runs,
           std::chrono::milliseconds grace)
      : store_(store), ingest_(ingest), runs_(std::move(runs)), grace_(grace) {}

  /// Starts with orchestrators that have died since the last call, and continues with the others.
  /// Does not wait for workers to end. Returns what is complete. `time`: wall-clock seconds for the
  /// records. Throws results::Error and Error.
  Recovered step(DeadOwner::Time now, double time);
  /// Closes the attempts of vanished hosts (Store::vanished_hosts()), and returns their number:
  /// those that had not finished are lost. To be called at the start.
  std::int64_t settle_vanished(double time);
  /// True while a worker of a dead orchestrator has been asked to end but has not ended.
  bool under_way() const { return !dying_.empty(); }
  /// True if a worker of this dead orchestrator was killed but does not end. Cleaning up after the
  /// orchestrator is tried again from time to time.
  bool has_lasting_worker(const std::string& owner) const { return lasting_.contains(owner); }

 private:
  void take_dead(DeadOwner::Time now);
  void conclude(const std::string& owner, double time, Recovered& recovered);

  results::Store& store_;
  Ingest& ingest_;
  std::filesystem::path runs_;
  std::chrono::milliseconds grace_;
  HostIdentity here_ = this_host();
  std::map<std::string, DeadOwner> dying_;
  std::map<std::string, DeadOwner::Time> lasting_;  // when each was last given up
};

/// Settles an attempt whose orchestrator is dead. Reads its events from the beginning, since a
/// power cut may have undone some that the database already contains, and rewrites what its other
/// files have lost. If neither the events nor the database contain its end, records it as stopped
/// or never started, or as `outcome` if that is given. A claim without a directory is forgotten. An
/// attempt that is over in the database is changed only if its events were cut. Returns true if the
/// attempt was open, or if its outcome has changed.
bool conclude_orphan(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                     const results::AttemptFacts& facts, const std::string& why, double time,
                     std::optional<results::Outcome> outcome = std::nullopt);

}  // namespace petlab::orchestrator
