#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "orchestrator/running/code_watch.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Handles the attempts of this run: reads what their workers write, judges how these end
/// (planning/blame.h), and settles the trials after the commit.
class Outcomes {
 public:
  /// `shares`: absent if the launcher has no shared devices.
  Outcomes(RunContext& context, Course& course, NextCommit& next, TrialTable& trials,
           LiveAttempts& attempts, SlotTable& slots, std::optional<Shares>& shares,
           DeviceGuard& guard, CodeWatch& code)
      : context_(context),
        course_(course),
        next_(next),
        trials_(trials),
        attempts_(attempts),
        slots_(slots),
        shares_(shares),
        guard_(guard),
        code_(code) {}

  /// Reads the events of all attempts with news. Attempts that are over leave their slot.
  void read_events();
  /// Judges the slot's ended workers, if everything they wrote has been read.
  void conclude_ended(WorkerSlot& slot);
  /// Records the end of an attempt. Its trial is planned again after the commit.
  void conclude_attempt(LiveAttempt& live, const results::Ending& ending);
  /// Forgets an attempt that has ended, or whose claim was withdrawn.
  void remove_from_slot(const LiveAttempt& live, WorkerSlot& slot);
  /// To be called after the commit: plans the trials of concluded attempts from the database, as
  /// the next start would, and settles them.
  void settle_committed();

  /// Handles a worker that could not be started, or ended before it began a trial. `what` says how;
  /// `lines` are its last lines.
  void launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines);
  /// Gives up on a slot's worker that was killed but does not end. Its attempts stay open: the next
  /// run determines how they ended.
  void give_up(WorkerSlot& slot);
  /// The number of trials that this run has finished.
  std::int64_t finished_here() const { return finished_here_; }

 private:
  void read_events(LiveAttempt& live);
  void note_progress(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update);
  void has_begun(LiveAttempt& live, WorkerSlot& slot);
  void handle_reported_end(LiveAttempt& live, WorkerSlot& slot,
                           const std::variant<protocol::Finished, protocol::Failed>& end);
  bool conclude_worker(WorkerSlot& slot, EndedWorker& ended);
  void never_begun(const LiveAttempt& live, const WorkerSlot& slot, const std::string& what,
                   const std::string& lines);
  std::string last_lines_of(const LiveAttempt& live, WorkerSlot& slot) const;
  void settle_over(std::size_t trial, TrialPlan plan);

  RunContext& context_;
  Course& course_;
  NextCommit& next_;
  TrialTable& trials_;
  LiveAttempts& attempts_;
  SlotTable& slots_;
  std::optional<Shares>& shares_;
  DeviceGuard& guard_;
  CodeWatch& code_;
  int launch_failures_ = 0;  // of all slots, in a row
  std::int64_t finished_here_ = 0;
};

}  // namespace petlab::orchestrator
