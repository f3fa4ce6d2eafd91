#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// The right to run one worker on a device. While it lives, no other petlab of this user on this
/// host gets the same one; a worker that inherits its lock keeps it beyond the orchestrator's
/// death.
struct Slot {
  std::string name;  // "cpu-3", "gpu-3" (the whole), "gpu-3.1" (a share): the same in every command
  std::string device;  // what trial.json says: "cpu", "cuda", "rocm"
  LockFile lock;
  std::string gpu_uuid = {};      // empty: a CPU core
  std::string gpu_selector = {};  // makes that GPU the only one that the worker sees
  std::int64_t reserved_mib = 0;  // of the GPU's memory
  std::int64_t reported_mib = 0;  // what its worker said of the trial that it is at; 0: nothing
  bool whole = false;             // nobody else gets a share of the GPU
};

/// CPU cores that this process may use; at least 1.
int usable_cores();

/// The folder of the slots' locks, one a user and host, apart from any database: PETLAB_SLOTS where
/// that is set, else /tmp/petlab-slots-UID. Made, for this user alone, where it is missing. Throws
/// Error where it cannot be made or belongs to somebody else.
std::filesystem::path slots_folder(const sweeps::Environment& environment);

/// True where a process of this user holds a lock on a file that was removed from `folder` and
/// whose name begins with `prefix`: temporary folders are cleaned. Looks through /proc.
bool is_held_though_removed(const std::filesystem::path& folder, const std::string& prefix);

/// Takes the first free one of the slots cpu-0 … cpu-(count-1); std::nullopt: all are taken, by
/// this process or others. Throws Error where a lock file cannot be made.
std::optional<Slot> acquire_cpu_slot(const std::filesystem::path& folder, int count);

}  // namespace petlab::orchestrator
