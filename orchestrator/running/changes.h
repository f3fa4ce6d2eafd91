#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/records/ingest.h"
#include "protocol/decisions.h"
#include "protocol/events.h"
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
  /// New values of validations of a trial.
  struct Validated {
    results::AttemptRef attempt;
    std::size_t trial = 0;
    std::vector<protocol::Metric> metrics;
    bool is_over = false;  // the worker has reported its end
  };
  /// A decision of the sweep's rule. It is in the trial's file already.
  struct Stopped {
    std::string trial_id;
    std::size_t trial = 0;
    protocol::Decision decision;
  };
  /// The last step whose validation was judged.
  struct Judged {
    results::AttemptRef attempt;
    std::int64_t step = 0;
  };
  std::vector<Validated> validated;
  std::vector<Judged> judged;
  std::vector<Stopped> stopped;
  std::filesystem::path post;     // of these decisions, to be removed after the commit
  std::vector<std::size_t> over;  // trials with an attempt that is over, however it ended
};

/// Adds the changes to the batch. Invariant: each attempt ends once, and its trial is planned
/// again.
void store(const Changes& changes, const std::filesystem::path& runs, Ingest& ingest,
           results::Batch& batch);

}  // namespace petlab::orchestrator
