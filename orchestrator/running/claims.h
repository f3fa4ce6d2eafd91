#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/gangs.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"
#include "orchestrator/running/shares.h"

namespace petlab::orchestrator {

/// Brings trials to workers: acquires slots, claims trials in the database, creates their
/// directories and gives them to workers.
class Claims {
 public:
  /// `shares`: absent if the launcher has no shared devices.
  Claims(RunContext& context, RunState& state, DeviceGuard& guard, std::optional<Shares>& shares)
      : context_(context), state_(state), guard_(guard), shares_(shares), gangs_(context, state) {}

  /// Acquires slots, if there is work for them, each only if `may_take` then returns true. `alone`:
  /// no other run shares them, so that a large trial can wait for several GPUs.
  void acquire_slots(const std::function<bool()>& may_take, bool alone);
  /// Starts a job in each slot that needs one, if the launcher has a queue.
  void start_jobs(EventLoop::Time now);
  /// The number of slots that this run may still acquire and has work for; 0 or less: none.
  std::int64_t slots_missing(EventLoop::Time now) const;
  /// The same in GPUs, where slots have some.
  std::int64_t gpus_missing(EventLoop::Time now) const;
  /// The number of waiting trials with this number of GPUs for which there is no idle slot,
  /// without regard to the limits on slots; 0 or less: none.
  std::int64_t slots_missing_for(std::int64_t gpus, EventLoop::Time now) const;
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
  void set_fruitless() { fruitless_since_ = state_.trials.additions(); }
  void forget_fruitless() { fruitless_since_.reset(); }
  /// Claims the chosen trials in the batch. `at_least`: the lowest number that each attempt may get
  /// (next_numbers()).
  void claim(const Choice& chosen, const std::vector<std::int64_t>& at_least,
             results::Batch& batch);
  /// For each chosen trial, the number after its highest attempt directory.
  std::vector<std::int64_t> next_numbers(const Choice& chosen) const;

  /// Creates the directory of one claimed attempt; false if all have one.
  bool prepare_one();
  /// Gives the ready attempts to the slot's worker, and starts a worker if there is none. Returns
  /// why it could not be started; absent otherwise.
  std::optional<std::string> give(WorkerSlot& slot);
  /// Closes workers that will get no more trials, and releases idle slots.
  void close_idle_workers();

 private:
  bool has_slots(std::int64_t gpus) const;
  void leave_impossible();
  bool is_to_make_room(const WorkerSlot& slot) const {
    return makes_room_ != 0 && slot.gpus != makes_room_;
  }
  bool is_prepared(WorkerSlot& slot, LiveAttempt& live);
  void hand_over(WorkerSlot& slot, LiveAttempt& live);
  void claim_one(WorkerSlot& slot, std::size_t trial, std::int64_t at_least, results::Batch& batch);
  const std::string& provenance_on(const std::string& gpu);

  RunContext& context_;
  RunState& state_;
  DeviceGuard& guard_;
  std::optional<Shares>& shares_;
  const Gangs gangs_;
  EventLoop::Time looked_for_slots_;
  // The number of GPUs of the first trial in line, while no slot has this number. Slots of other
  // sizes then take no more trials. 0: there is such a slot.
  std::int64_t makes_room_ = 0;
  std::map<std::string, std::string> provenance_;  // by the slot's GPU; empty for no GPU
  std::optional<std::int64_t> fruitless_since_;    // TrialTable::additions() at that time
};

}  // namespace petlab::orchestrator
