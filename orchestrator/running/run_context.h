#pragma once

#include <string>
#include <utility>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/run.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What all parts of a run share. They change none of it, except through the store.
struct RunContext {
  RunContext(EventLoop& its_loop, results::Store& its_store, Launcher& its_launcher,
             RunInput its_input, RunObserver& its_observer)
      : loop(its_loop),
        store(its_store),
        launcher(its_launcher),
        observer(its_observer),
        input(std::move(its_input)),
        ingest(store, input.options.runs) {}
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  EventLoop& loop;
  results::Store& store;
  Launcher& launcher;
  RunObserver& observer;
  const RunInput input;
  Ingest ingest;
  const HostIdentity here = this_host();
  PlanContext planning;  // filled when the run starts
};

/// Whether a run continues, and why not.
struct Course {
  enum class Phase { running, finishing, stopping, killing };
  Phase phase = Phase::running;
  int interrupts = 0;   // by signals of the user
  std::string problem;  // ends the run although the user did not ask for it; empty: none
  std::string left;     // why the first skipped trial is left for the next run
  /// True while new trials may begin.
  bool claiming() const { return phase == Phase::running && problem.empty(); }
};

}  // namespace petlab::orchestrator
