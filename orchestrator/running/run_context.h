#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

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

/// What all parts of one run know: who it works for and with. Its parts change none of it but
/// through the store.
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

/// Whether a run goes on, and why not.
struct Course {
  enum class Phase { running, finishing, stopping, killing };
  Phase phase = Phase::running;
  std::string problem;  // for which the run ends although nobody asked it to; empty: none
  std::string left;     // why the first of the trials that are left for the next run is
  /// New trials begin.
  bool claiming() const { return phase == Phase::running && problem.empty(); }
};

/// What came of reading files and of ended workers in this turn: the next transaction stores it,
/// and what follows from it is done when that is committed.
struct NextCommit {
  std::vector<std::function<void(results::Batch&)>> writes;
  std::vector<std::size_t> concluded;  // trials to be planned from the database
  std::vector<std::size_t> withdrawn;  // likewise: trials whose claims are withdrawn
  std::vector<std::pair<std::size_t, TrialPlan>> over;  // trials whose plan is known
  /// Another orchestrator was first. Perhaps it was over before the last look, and nothing will be
  /// written any more: what came of it is looked up all the same.
  bool claim_lost = false;
};

}  // namespace petlab::orchestrator
