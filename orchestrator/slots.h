#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/lock_file.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// The right to run one worker on a device. While it lives, no other petlab of this user on this
/// host gets the same one; a worker that inherits its lock keeps it beyond the orchestrator's
/// death.
struct Slot {
  std::string name;    // "cpu-3": the lock file's name, the same in every command
  std::string device;  // what trial.json says: "cpu"
  LockFile lock;
};

/// CPU cores that this process may use; at least 1.
int usable_cores();

/// The folder of the slots' locks, one a user and host, apart from any database: PETLAB_SLOTS where
/// that is set, else /tmp/petlab-slots-UID. Made, for this user alone, where it is missing. Throws
/// Error where it cannot be made or belongs to somebody else.
std::filesystem::path slots_folder(const sweeps::Environment& environment);

/// Takes the first free one of the slots cpu-0 … cpu-(count-1); std::nullopt: all are taken, by
/// this process or others. Throws Error where a lock file cannot be made.
std::optional<Slot> acquire_cpu_slot(const std::filesystem::path& folder, int count);

}  // namespace petlab::orchestrator
