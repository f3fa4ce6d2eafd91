#include "orchestrator/running/turn.h"

#include <utility>
#include <variant>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/decide.h"

namespace petlab::orchestrator {
namespace {

using End = Changes::End;
using results::Outcome;

End judge_reported(const Turn::Reported& reported, double time) {
  End end;
  end.of = reported.of;
  if (std::holds_alternative<protocol::Finished>(reported.end)) {
    end.device = End::Device::works;
    return end;
  }
  if (std::holds_alternative<protocol::Stopped>(reported.end)) {
    end.ending = ending_of_stopped(reported.verdict, reported.asked_to_stop);
    end.ending->time = time;
    return end;
  }
  const protocol::Failed& failed = std::get<protocol::Failed>(reported.end);
  end.ending.emplace();
  end.ending->outcome = Outcome::failed;
  end.ending->reason = failed.reason;
  end.ending->time = time;
  end.ending->log_tail = reported.last_lines;
  if (failed.kind == "out_of_memory") end.retry = End::Retry::out_of_memory;
  if (failed.kind == "device" || failed.kind == "error") end.device = End::Device::failed;
  if (!reported.worker_ended) {
    // After a device error the process exits by itself; being asked to stop, it is killed if it
    // does not.
    if (failed.kind == "device") end.worker = End::WorkerNext::stops;
    if (failed.kind == "protocol") end.worker = End::WorkerNext::dies;
  }
  return end;
}

void judge_gone(const Turn::Gone& gone, const Turn& turn, Changes& changes) {
  const Blame blame = blame_for(gone.end, gone.worker, gone.known);
  if (blame.launch != LaunchBlame::none || blame.never_begun) {
    Changes::WorkerEnded worker;
    worker.slot = gone.slot;
    worker.job = gone.job;
    worker.blame = blame.launch;
    worker.how = to_string(gone.end);
    worker.lines = gone.end.last_lines;
    if (blame.never_begun) worker.never_begun = gone.attempts[*blame.never_begun];
    changes.workers.push_back(std::move(worker));
  }
  for (std::size_t at = 0; at < gone.attempts.size(); ++at) {
    End end;
    end.of = gone.attempts[at];
    end.ending = blame.endings[at];
    end.ending->time = turn.time;
    const bool died =
        end.ending->outcome == Outcome::crashed || end.ending->outcome == Outcome::stalled;
    // A slot counts the failed launches on its GPU. Hosts of a cluster have no slots of their own,
    // so DeviceGuard counts theirs.
    const bool unbegun = blame.never_begun == at && turn.queue;
    if (died || unbegun) end.device = End::Device::failed;
    changes.ends.push_back(std::move(end));
  }
  const std::size_t first = changes.ends.size() - gone.attempts.size();
  for (const std::size_t at : blame.to_try_alone) {
    changes.ends[first + at].retry = End::Retry::alone;
  }
}

End judge_unstarted(const Turn::Unstarted& unstarted, double time) {
  End end;
  end.of = unstarted.of;
  end.ending.emplace();
  end.ending->outcome = unstarted.cancelled ? Outcome::cancelled : Outcome::never_started;
  end.ending->reason = unstarted.cancelled ? kCancelledByUser : unstarted.why;
  end.ending->time = time;
  return end;
}

}  // namespace

Changes judge(const Turn& turn) {
  Changes changes;
  changes.withdrawn = turn.vanished;
  for (const Turn::Reported& reported : turn.reported) {
    changes.ends.push_back(judge_reported(reported, turn.time));
  }
  for (const Turn::Gone& gone : turn.gone) judge_gone(gone, turn, changes);
  for (const Turn::Unstarted& unstarted : turn.unstarted) {
    changes.ends.push_back(judge_unstarted(unstarted, turn.time));
  }
  return changes;
}

void store(const Turn& turn, const Changes& changes, const std::filesystem::path& runs,
           Ingest& ingest, results::Batch& batch) {
  for (const auto& [attempt, launch] : turn.launches) batch.record_launch(attempt, launch);
  for (const NewEvents& events : turn.events) {
    ingest.store(batch, events);
    fault_point("events_read");
  }
  // Each follows the events on which it is based.
  for (const Changes::End& end : changes.ends) {
    if (end.ending) batch.record_ending(end.of.attempt, *end.ending);
  }
  for (const auto& judged : changes.judged) record_judged(batch, judged.attempt, judged.step);
  for (const auto& stopped : changes.stopped) {
    store_decisions(batch, stopped.trial_id, protocol::read_decisions(runs, stopped.trial_id));
  }
  for (const TurnAttempt& claim : changes.withdrawn) batch.forget_attempt(claim.attempt);
}

}  // namespace petlab::orchestrator
