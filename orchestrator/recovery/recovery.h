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

/// What a start, or a wait for another orchestrator, cleared up.
struct Recovered {
  std::int64_t owners = 0;    // orchestrators that had died
  std::int64_t attempts = 0;  // attempts of theirs that are over now
};

/// Clears up after orchestrators of this machine that died: ends the workers that they left behind,
/// reads what those had written, and records the end of every attempt that was open. Attempts of
/// the living, of other hosts and in queues (Slurm) are left alone. Several orchestrators may do it
/// at once: each dead one is cleared up by one of them. What is not complete when this object goes
/// is left for another.
class Recovery {
 public:
  /// The references must outlive it. `grace`: as RunOptions::grace.
  Recovery(results::Store& store, Ingest& ingest, std::filesystem::path runs,
           std::chrono::milliseconds grace)
      : store_(store), ingest_(ingest), runs_(std::move(runs)), grace_(grace) {}

  /// Begins with those that have died since, and goes on with the others; does not wait for workers
  /// to end. Returns what is complete. `time`: for the record. Throws results::Error and Error.
  Recovered step(DeadOwner::Time now, double time);
  /// Some worker of a dead orchestrator is asked to end, and not gone yet.
  bool under_way() const { return !dying_.empty(); }
  /// True if a worker of that dead orchestrator was killed and does not end; it is tried again from
  /// time to time.
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
  std::map<std::string, DeadOwner::Time> lasting_;  // when they were given up last
};

/// Settles an attempt whose orchestrator is dead. Reads its events from their beginning, since a
/// power cut may have taken back some that the database has, and writes again what its other files
/// have lost. Where the events have no end and the database has none, records that nobody saw it:
/// stopped, or never started. A claim without a directory is forgotten. An attempt that is over in
/// the database is changed only where its events were cut. Returns true if it was open, or is over
/// in another way than before.
bool conclude_orphan(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                     const results::AttemptFacts& facts, const std::string& why, double time);

}  // namespace petlab::orchestrator
