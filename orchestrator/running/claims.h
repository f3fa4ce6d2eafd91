#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/outcomes.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// The way of a trial to a worker: a slot for it, the claim in the database, its directory, the
/// worker's line.
class Claims {
 public:
  Claims(RunContext& context, Course& course, NextCommit& next, TrialTable& trials,
         LiveAttempts& attempts, SlotTable& slots, std::optional<Shares>& shares,
         DeviceGuard& guard, Outcomes& outcomes)
      : context_(context),
        course_(course),
        next_(next),
        trials_(trials),
        attempts_(attempts),
        slots_(slots),
        shares_(shares),
        guard_(guard),
        outcomes_(outcomes) {}

  /// Takes slots where there would be something to do for them.
  void acquire_slots();
  /// When acquire_slots() or a slot's backoff is worth another turn.
  std::optional<EventLoop::Time> next_chance(EventLoop::Time now) const;

  /// Some slot takes claims, and something waits that could be claimed for it. Where a choice was
  /// fruitless only `news`, or more that waits, can have changed that.
  bool can_claim(EventLoop::Time now, bool news) const;
  /// Some slot that takes claims has little left for its worker.
  bool runs_dry(EventLoop::Time now) const;
  /// Trials leave the schedule for slots.
  void choose(Choice& chosen, EventLoop::Time now);
  /// Nothing could be chosen: not to be tried again before something has changed.
  void set_fruitless() { fruitless_since_ = trials_.additions(); }
  void forget_fruitless() { fruitless_since_.reset(); }
  /// Claims what was chosen in the batch. `at_least`: of each, the number that its attempt gets at
  /// least (next_numbers()).
  void claim(const Choice& chosen, const std::vector<std::int64_t>& at_least,
             results::Batch& batch);
  /// One above the highest directory of each trial chosen.
  std::vector<std::int64_t> next_numbers(const Choice& chosen) const;

  /// Makes the directory of one attempt that is claimed; false where all are made.
  bool prepare_one();
  /// Hands what is ready to the slot's worker, starting one where there is none.
  void give(WorkerSlot& slot);
  /// Some claim of the slot will reach no worker: all do not where no more trials are to begin, or
  /// none here; one does not that the user took out, or whose checkpoint is gone.
  bool any_to_give_back(const WorkerSlot& slot) const;
  /// Those are concluded as never started, or cancelled, or their claims are taken back.
  void give_ready_back(WorkerSlot& slot);
  /// Closes the workers that will get nothing more, and gives idle slots back.
  void close_idle_workers();
  /// Of local workers: their launches are in files, and go to the database with the next commit.
  void record_launches();

 private:
  std::int64_t slots_missing(EventLoop::Time now) const;
  void claim_one(WorkerSlot& slot, std::size_t trial, std::int64_t at_least, results::Batch& batch);
  const std::string& provenance_on(const std::string& gpu);
  void prepare(LiveAttempt& live);
  bool to_give_back(const WorkerSlot& slot, const LiveAttempt& live) const;
  /// Of a trial that nobody cancelled.
  std::string why_given_back(const WorkerSlot& slot) const;
  void withdraw_claim(const LiveAttempt& live, WorkerSlot& slot);
  bool start_worker(WorkerSlot& slot, LiveAttempt& live);

  RunContext& context_;
  Course& course_;
  NextCommit& next_;
  TrialTable& trials_;
  LiveAttempts& attempts_;
  SlotTable& slots_;
  std::optional<Shares>& shares_;
  DeviceGuard& guard_;
  Outcomes& outcomes_;
  EventLoop::Time looked_for_slots_;
  std::map<std::string, std::string> provenance_;  // by the slot's GPU, empty: none
  std::optional<std::int64_t> fruitless_since_;    // TrialTable::additions() then
};

}  // namespace petlab::orchestrator
