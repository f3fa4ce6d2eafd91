#pragma once

#include <string>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/run.h"
#include "results/store.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// What all parts of a run share. They change none of it, except through the store.
struct RunContext {
  EventLoop& loop;
  results::Store& store;
  Launcher& launcher;
  const sweeps::Sweep& sweep;
  const sweeps::Locations& locations;
  const RunOptions& options;
  RunObserver& observer;
  Ingest& ingest;
  HostIdentity here;
  PlanContext planning;  // filled when the run starts
};

/// Whether a run continues, and why not.
struct Course {
  enum class Phase { running, finishing, stopping, killing };
  Phase phase = Phase::running;
  std::string problem;  // ends the run although the user did not ask for it; empty: none
  std::string left;     // why the first skipped trial is left for the next run
  /// True while new trials may begin.
  bool claiming() const { return phase == Phase::running && problem.empty(); }
};

}  // namespace petlab::orchestrator
