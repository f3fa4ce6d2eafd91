#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "orchestrator/evidence.h"
#include "orchestrator/ingest.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What a start, or a wait for another orchestrator, cleared up.
struct Recovered {
  std::int64_t owners = 0;    // orchestrators that had died
  std::int64_t attempts = 0;  // attempts of theirs that are over now
};

/// Ends the workers that dead orchestrators of this machine left behind, reads what their workers
/// had written, and records the end of every attempt that was open. Attempts of the living, of
/// other hosts and in queues (Slurm) are left alone. Safe to call from several orchestrators at
/// once: each dead one is cleared up by one of them. Throws results::Error and Error.
Recovered recover(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                  const HostIdentity& here, std::chrono::milliseconds grace, double time);

/// Reads what an attempt's worker had written and, where that was not its end, records that nobody
/// saw it: stopped, or never started. A claim without a directory is forgotten.
void conclude_orphan(results::Store& store, Ingest& ingest, const std::filesystem::path& runs,
                     const results::AttemptFacts& facts, const std::string& why, double time);

}  // namespace petlab::orchestrator
