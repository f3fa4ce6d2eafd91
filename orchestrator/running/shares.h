#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/records/ingest.h"
#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Trials that are to be claimed, each with its slot.
using Choice = std::vector<std::pair<WorkerSlot*, std::size_t>>;

/// Slots as shares of devices that several workers have at once: how much memory a trial needs,
/// which slot it may have, and what becomes of a slot's reservation while its worker runs.
class Shares {
 public:
  Shares(RunContext& context, SharedDevices& devices, TrialTable& trials, SlotTable& slots,
         const DeviceGuard& guard)
      : context_(context), devices_(devices), trials_(trials), slots_(slots), guard_(guard) {}

  /// For each of the best trials an idle slot that suits it, or room for a new one. True where a
  /// slot was added.
  bool acquire();
  /// Slots were given back: there may be room before the next look.
  void look_again() { looked_ = {}; }
  /// When acquire() looked for room last.
  EventLoop::Time looked() const { return looked_; }
  void choose(Choice& chosen, EventLoop::Time now);
  /// After note_memory(), which says whether the worker's memory `grew`: its reservation follows,
  /// also where it has ramped up and needs no more.
  void memory_reported(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update, bool grew);
  /// A trial had no memory left: it is tried again with a device for itself.
  void ran_out_of_memory(const LiveAttempt& live, const WorkerSlot& slot);
  /// Asks again for the reservations that were refused because another petlab was at it.
  void retry_reservations();

 private:
  std::optional<std::int64_t> memory_of(std::size_t trial) const;
  std::optional<std::int64_t> estimated(std::size_t trial) const;
  SlotRequest request_for(std::size_t trial) const;
  bool suits(const WorkerSlot& slot, const DeviceShare& share, std::size_t trial) const;
  WorkerSlot* idle_slot(std::size_t trial, EventLoop::Time now);
  void resize(WorkerSlot& slot, std::int64_t wanted, const LiveAttempt* but = nullptr);

  RunContext& context_;
  SharedDevices& devices_;
  TrialTable& trials_;
  SlotTable& slots_;
  const DeviceGuard& guard_;
  EventLoop::Time looked_;
  mutable std::unordered_map<std::size_t, std::int64_t> estimates_;  // MiB, of those asked for
};

}  // namespace petlab::orchestrator
