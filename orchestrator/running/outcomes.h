#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// What becomes of the attempts of this run: reads what their workers write, judges how those end
/// (planning/blame.h), and settles their trials when that is committed.
class Outcomes {
 public:
  /// `shares`: absent where the launcher has no shared devices.
  Outcomes(RunContext& context, Course& course, NextCommit& next, TrialTable& trials,
           LiveAttempts& attempts, SlotTable& slots, std::optional<Shares>& shares,
           DeviceGuard& guard)
      : context_(context),
        course_(course),
        next_(next),
        trials_(trials),
        attempts_(attempts),
        slots_(slots),
        shares_(shares),
        guard_(guard) {}

  /// Reads all that has news; what is over leaves its slot.
  void read_events();
  /// Judges the workers that have ended, as far as all is read that they wrote.
  void conclude_ended(WorkerSlot& slot);
  /// Records the end of an attempt, whose trial is planned anew when that is committed.
  void conclude_attempt(LiveAttempt& live, const results::Ending& ending);
  /// Forgets an attempt that has ended, or whose claim was withdrawn.
  void remove_from_slot(const LiveAttempt& live, WorkerSlot& slot);
  /// After the commit: plans what was concluded, from the database as the next start would, and
  /// settles it.
  void settle_committed();

  /// A worker could not be started, or ended before it began a trial: `what`, and its last lines.
  void launch_failed(WorkerSlot& slot, const std::string& what, const std::string& lines);
  /// Gives up on a slot's worker, which was killed and does not end. Its attempts stay open: the
  /// next run finds out what became of them.
  void give_up(WorkerSlot& slot);
  /// Of this run.
  std::int64_t finished_here() const { return finished_here_; }

 private:
  void read_events(LiveAttempt& live);
  void note_progress(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update);
  void has_begun(LiveAttempt& live, WorkerSlot& slot);
  void over_by_its_word(LiveAttempt& live, WorkerSlot& slot,
                        const std::variant<protocol::Finished, protocol::Failed>& word);
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
  int launch_failures_ = 0;  // of all slots, in a row
  std::int64_t finished_here_ = 0;
};

}  // namespace petlab::orchestrator
