#include "orchestrator/running/changes.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "base/invariant.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/decide.h"

namespace petlab::orchestrator {

void store(const Changes& changes, const std::filesystem::path& runs, Ingest& ingest,
           results::Batch& batch) {
  std::set<std::int64_t> ended;
  for (const auto& [attempt, ending] : changes.endings) {
    PETLAB_INVARIANT(
        ended.insert(attempt.key).second,
        fmt::format("attempt {} of {} ends twice in one commit", attempt.number, attempt.trial_id));
  }
  PETLAB_INVARIANT(ended.size() <= changes.over.size(),
                   fmt::format("{} attempts ended, but {} trials are to be planned again",
                               ended.size(), changes.over.size()));
  for (const auto& [attempt, launch] : changes.launches) batch.record_launch(attempt, launch);
  for (const NewEvents& events : changes.events) {
    ingest.store(batch, events);
    fault_point("events_read");
  }
  // Each follows the events on which it is based.
  for (const auto& [attempt, ending] : changes.endings) batch.record_ending(attempt, ending);
  for (const auto& judged : changes.judged) record_judged(batch, judged.attempt, judged.step);
  for (const auto& stopped : changes.stopped) {
    store_decisions(batch, stopped.trial_id, protocol::read_decisions(runs, stopped.trial_id));
  }
  for (const auto& withdrawn : changes.withdrawn) batch.forget_attempt(withdrawn.attempt);
}

}  // namespace petlab::orchestrator
