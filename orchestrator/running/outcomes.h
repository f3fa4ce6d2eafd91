#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/turn.h"

namespace petlab::orchestrator {

/// Handles the attempts of this run: looks at what their workers write and how these end, carries
/// out what judge() decides, and settles the trials after the commit.
class Outcomes {
 public:
  /// `shares`: absent if the launcher has no shared devices.
  Outcomes(RunContext& context, RunState& state, DeviceGuard& guard, std::optional<Shares>& shares)
      : context_(context), state_(state), guard_(guard), shares_(shares) {}

  /// Reads the events of all attempts with news, and finds the workers that ended and the claims
  /// that will reach none (preparation.h), for which it creates directories. Updates what is known
  /// about attempts and slots. An error is part of the turn: what was found before it still counts.
  Turn look();
  /// True if the slot has such claims.
  bool any_unstarted(const WorkerSlot& slot) const;
  /// Logs the ends and applies them to slots, devices and the schedule. Attempts that are over
  /// leave their slot. Invariant: each attempt ends once.
  void carry_out(const Changes& changes);
  /// To be called once the changes are committed: plans the trials from the database, as the next
  /// start would, and settles them.
  void settle(const Changes& changes);

  /// Handles a worker that could not be started, or ended before it began a trial. `what` says how;
  /// `lines` are its last lines. `job`: of a queue; empty: none.
  void launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines,
                     const std::string& job);
  /// Gives up on a slot's worker that was killed but does not end. Its attempts stay open: the next
  /// run determines how they ended.
  void give_up(WorkerSlot& slot);
  /// The number of trials that this run has finished.
  std::int64_t finished_here() const { return finished_here_; }

 private:
  void look(Turn& turn);
  void read_events(LiveAttempt& live, Turn& turn);
  void note_progress(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update);
  void complete_launch(LiveAttempt& live, const results::Launch& now, Turn& turn);
  void has_begun(LiveAttempt& live, WorkerSlot& slot);
  void note_end(LiveAttempt& live, WorkerSlot& slot, const AttemptOver& end, Turn& turn);
  bool look_at_ended(const WorkerSlot& slot, const EndedWorker& ended, Turn& turn);
  void look_at_unstarted(const WorkerSlot& slot, Turn& turn);
  void carry_out(const Changes::WorkerEnded& worker);
  void carry_out(const Changes::End& end);
  /// Forgets an attempt that has ended, or whose claim was withdrawn.
  void remove_from_slot(const LiveAttempt& live, WorkerSlot& slot);
  void never_begun(const TurnAttempt& attempt, const WorkerSlot& slot, const std::string& what,
                   const std::string& lines);
  std::string last_lines_of(const LiveAttempt& live, WorkerSlot& slot) const;
  /// Why a claim of a trial that was not cancelled reaches no worker.
  std::string why_unstarted(const WorkerSlot& slot) const;

  RunContext& context_;
  RunState& state_;
  DeviceGuard& guard_;
  std::optional<Shares>& shares_;
  int launch_failures_ = 0;            // of all slots, in a row; those of a job count once
  std::set<std::string> failed_jobs_;  // those among them
  std::int64_t finished_here_ = 0;
};

}  // namespace petlab::orchestrator
