#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "orchestrator/planning/device_health.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Keeps a broken GPU or host of a cluster from failing a whole sweep: retries trials on other
/// devices, and disables a device for this run if every trial fails there (DeviceHealth). Trials
/// that failed because of it are retried; a `retry` line in their decisions records the reason.
class DeviceGuard {
 public:
  DeviceGuard(RunContext& context, RunState& state) : context_(context), state_(state) {}

  /// Record how an attempt ended. `why` is one line.
  void finished(const LiveAttempt& live, const WorkerSlot& slot);
  void failed(const LiveAttempt& live, WorkerSlot& slot, const std::string& why);
  /// To be called after the commit: disables devices and retries the trials that failed because of
  /// them.
  void settle_committed();

  /// Decides which slots take no new trial because their device is disabled or must wait.
  void bar_slots();
  bool is_disabled(const WorkerSlot& slot) const;
  /// The number of the slot's GPUs that are not disabled; `slot.gpus` if they cannot be told apart.
  std::int64_t enabled_gpus(const WorkerSlot& slot) const;
  /// False if the trial failed on the slot's device and another device of this run can have it.
  bool may_have(const WorkerSlot& slot, std::size_t trial) const;
  /// The devices on which the trial failed.
  std::set<std::string> avoided_by(std::size_t trial) const;

 private:
  struct Known {
    std::string name;  // for people: "gpu-0", "host n2"
    std::string why;   // of its last failure
  };
  /// How a GPU, or a host, is used: as the worst of all devices that contain it.
  struct Use {
    DeviceUse use = DeviceUse::usual;
    std::size_t failures = 0;
    bool operator==(const Use&) const = default;
  };
  std::string device_of(const LiveAttempt& live, const WorkerSlot& slot);
  void excuse(const DeviceHealth::Failure& failure);

  RunContext& context_;
  RunState& state_;
  DeviceHealth health_;
  std::map<std::string, Known> known_;
  std::map<std::string, Use> uses_;  // by GPU or host
};

}  // namespace petlab::orchestrator
