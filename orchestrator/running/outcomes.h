#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "orchestrator/running/changes.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "orchestrator/running/shares.h"

namespace petlab::orchestrator {

/// Handles the attempts of this run: reads what their workers write, judges how these end
/// (planning/blame.h), and settles the trials after the commit.
class Outcomes {
 public:
  /// `shares`: absent if the launcher has no shared devices.
  Outcomes(RunContext& context, RunState& state, DeviceGuard& guard, std::optional<Shares>& shares)
      : context_(context), state_(state), guard_(guard), shares_(shares) {}

  /// Reads the events of all attempts with news. Attempts that are over leave their slot.
  void read_events(Changes& changes);
  /// Judges the slot's ended workers, if everything they wrote has been read.
  void conclude_ended(WorkerSlot& slot, Changes& changes);
  /// True if the slot has claims that will reach no worker (preparation.h).
  bool any_unstarted(const WorkerSlot& slot) const;
  /// Concludes these claims as never started or cancelled, or withdraws them.
  void conclude_unstarted(WorkerSlot& slot, Changes& changes);
  /// To be called once the changes are committed: plans the trials from the database, as the next
  /// start would, and settles them.
  void settle(const Changes& changes);

  /// Handles a worker that could not be started, or ended before it began a trial. `what` says how;
  /// `lines` are its last lines.
  void launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines);
  /// Gives up on a slot's worker that was killed but does not end. Its attempts stay open: the next
  /// run determines how they ended.
  void give_up(WorkerSlot& slot);
  /// The number of trials that this run has finished.
  std::int64_t finished_here() const { return finished_here_; }

 private:
  void read_events(LiveAttempt& live, Changes& changes);
  void note_progress(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update);
  void complete_launch(LiveAttempt& live, const results::Launch& now, Changes& changes);
  void has_begun(LiveAttempt& live, WorkerSlot& slot);
  void handle_reported_end(LiveAttempt& live, WorkerSlot& slot, const AttemptOver& end,
                           Changes& changes);
  bool conclude_worker(WorkerSlot& slot, EndedWorker& ended, Changes& changes);
  /// Records the end of an attempt. Its trial is planned again after the commit.
  void conclude_attempt(LiveAttempt& live, const results::Ending& ending, Changes& changes);
  /// Forgets an attempt that has ended, or whose claim was withdrawn.
  void remove_from_slot(const LiveAttempt& live, WorkerSlot& slot);
  void never_begun(const LiveAttempt& live, const WorkerSlot& slot, const std::string& what,
                   const std::string& lines);
  std::string last_lines_of(const LiveAttempt& live, WorkerSlot& slot) const;
  /// Why a claim of a trial that was not cancelled reaches no worker.
  std::string why_unstarted(const WorkerSlot& slot) const;

  RunContext& context_;
  RunState& state_;
  DeviceGuard& guard_;
  std::optional<Shares>& shares_;
  int launch_failures_ = 0;  // of all slots, in a row
  std::int64_t finished_here_ = 0;
};

}  // namespace petlab::orchestrator
