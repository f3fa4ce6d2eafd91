#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/records/ingest.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Trials to claim, each with its slot.
using Choice = std::vector<std::pair<WorkerSlot*, std::size_t>>;

/// Handles slots that are shares of devices: decides how much memory a trial needs and which slot
/// it may have, and adjusts a slot's reservation while its worker runs.
class Shares {
 public:
  Shares(RunContext& context, SharedDevices& devices, RunState& state, const DeviceGuard& guard)
      : context_(context), devices_(devices), state_(state), guard_(guard) {}

  /// Finds an idle slot or acquires a new one for each of the best trials. True if a slot was
  /// added.
  bool acquire(const std::function<bool()>& may_take);
  /// Lets acquire() look for room immediately, because slots were released.
  void look_again() { looked_ = {}; }
  /// When acquire() last looked for room.
  EventLoop::Time looked() const { return looked_; }
  void choose(Choice& chosen, EventLoop::Time now);
  /// Adjusts the reservation to the memory that the worker reported, also when it has settled. To
  /// be called after note_memory(), which returns `grew`.
  void memory_reported(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update, bool grew);
  /// Handles a trial that ran out of memory: it is retried with a device for itself.
  void ran_out_of_memory(const LiveAttempt& live, const WorkerSlot& slot);
  /// Repeats requests for reservations that failed because another petlab was changing the device's
  /// shares.
  void retry_reservations();

 private:
  std::optional<std::int64_t> memory_of(std::size_t trial) const;
  std::optional<std::int64_t> estimated(std::size_t trial) const;
  SlotRequest request_for(std::size_t trial) const;
  bool suits(const WorkerSlot& slot, const DeviceShare& share, std::size_t trial) const;
  WorkerSlot* idle_slot(std::size_t trial, EventLoop::Time now);
  void resize(WorkerSlot& slot, std::int64_t wanted, const LiveAttempt* except = nullptr);

  RunContext& context_;
  SharedDevices& devices_;
  RunState& state_;
  const DeviceGuard& guard_;
  EventLoop::Time looked_;
  mutable std::unordered_map<std::size_t, std::int64_t> estimates_;  // MiB by trial
};

}  // namespace petlab::orchestrator
