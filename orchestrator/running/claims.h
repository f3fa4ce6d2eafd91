#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/running/code_watch.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/outcomes.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/shares.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Brings trials to workers: acquires slots, claims trials in the database, creates their
/// directories and gives them to workers.
class Claims {
 public:
  Claims(RunContext& context, Course& course, NextCommit& next, TrialTable& trials,
         LiveAttempts& attempts, SlotTable& slots, std::optional<Shares>& shares,
         DeviceGuard& guard, Outcomes& outcomes, CodeWatch& code)
      : context_(context),
        course_(course),
        next_(next),
        trials_(trials),
        attempts_(attempts),
        slots_(slots),
        shares_(shares),
        guard_(guard),
        outcomes_(outcomes),
        code_(code) {}

  /// Acquires slots, if there is work for them, each only if `may_take` then returns true.
  void acquire_slots(const std::function<bool()>& may_take);
  /// The number of slots that this run may still acquire and has work for; 0 or less: none.
  std::int64_t slots_missing(EventLoop::Time now) const;
  /// The next time at which acquire_slots() may succeed, a trial is ready or a slot's backoff ends.
  std::optional<EventLoop::Time> next_chance(EventLoop::Time now) const;

  /// True if a slot takes claims and a trial is ready. After a fruitless choice, only `news` or a
  /// new waiting trial can make it true again.
  bool can_claim(EventLoop::Time now, bool news) const;
  /// True if the worker of a slot that takes claims has little work left.
  bool runs_dry(EventLoop::Time now) const;
  /// Moves trials from the schedule to slots.
  void choose(Choice& chosen, EventLoop::Time now);
  /// Records that nothing could be chosen: choosing again is useless until something changes.
  void set_fruitless() { fruitless_since_ = trials_.additions(); }
  void forget_fruitless() { fruitless_since_.reset(); }
  /// Claims the chosen trials in the batch. `at_least`: the lowest number that each attempt may get
  /// (next_numbers()).
  void claim(const Choice& chosen, const std::vector<std::int64_t>& at_least,
             results::Batch& batch);
  /// For each chosen trial, the number after its highest attempt directory.
  std::vector<std::int64_t> next_numbers(const Choice& chosen) const;

  /// Creates the directory of one claimed attempt; false if all have one.
  bool prepare_one();
  /// Gives the ready attempts to the slot's worker, and starts a worker if there is none.
  void give(WorkerSlot& slot);
  /// True if a claim of the slot will reach no worker: no more trials start in this run or in this
  /// slot, the user has cancelled the trial, or its checkpoint no longer exists.
  bool any_to_give_back(const WorkerSlot& slot) const;
  /// Concludes these claims as never started or cancelled, or withdraws them.
  void give_ready_back(WorkerSlot& slot);
  /// Closes workers that will get no more trials, and releases idle slots.
  void close_idle_workers();
  /// Adds the noted launches (LiveAttempts) to the next commit. The attempts' files already contain
  /// them.
  void record_launches();

 private:
  void claim_one(WorkerSlot& slot, std::size_t trial, std::int64_t at_least, results::Batch& batch);
  const std::string& provenance_on(const std::string& gpu);
  void prepare(LiveAttempt& live);
  bool to_give_back(const WorkerSlot& slot, const LiveAttempt& live) const;
  /// The reason for a trial that was not cancelled.
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
  CodeWatch& code_;
  EventLoop::Time looked_for_slots_;
  std::map<std::string, std::string> provenance_;  // by the slot's GPU; empty for no GPU
  std::optional<std::int64_t> fruitless_since_;    // TrialTable::additions() at that time
};

}  // namespace petlab::orchestrator
