#pragma once

#include <cstddef>
#include <vector>

#include "orchestrator/records/ingest.h"
#include "results/attempt.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What a turn found out about this run's attempts: data for one transaction. All that depends on
/// it follows after the commit (Outcomes::settle()).
struct Changes {
  struct Launched {
    results::AttemptRef attempt;
    results::Launch launch;
  };
  struct Ended {
    results::AttemptRef attempt;
    results::Ending ending;
  };
  /// A claim to be forgotten.
  struct Withdrawn {
    results::AttemptRef attempt;
    std::size_t trial = 0;
  };
  std::vector<Launched> launches;
  std::vector<NewEvents> events;
  std::vector<Ended> endings;
  std::vector<Withdrawn> withdrawn;
  std::vector<std::size_t> over;  // trials with an attempt that is over, however it ended
};

/// Adds the changes to the batch. Invariant: each attempt ends once, and its trial is planned
/// again.
void store(const Changes& changes, Ingest& ingest, results::Batch& batch);

}  // namespace petlab::orchestrator
