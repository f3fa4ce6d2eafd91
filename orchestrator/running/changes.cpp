#include "orchestrator/running/changes.h"

#include "orchestrator/host/fault_point.h"

namespace petlab::orchestrator {

void store(const Changes& changes, Ingest& ingest, results::Batch& batch) {
  for (const auto& [attempt, launch] : changes.launches) batch.record_launch(attempt, launch);
  for (const NewEvents& events : changes.events) {
    ingest.store(batch, events);
    fault_point("events_read");
  }
  // Each follows the events on which it is based.
  for (const auto& [attempt, ending] : changes.endings) batch.record_ending(attempt, ending);
  for (const auto& withdrawn : changes.withdrawn) batch.forget_attempt(withdrawn.attempt);
}

}  // namespace petlab::orchestrator
