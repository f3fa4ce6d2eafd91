#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// The right to run one worker on a device. While it exists, no other petlab process of this user
/// on this host gets the same slot. A worker that inherits its lock holds the slot even after the
/// orchestrator dies.
struct Slot {
  // "cpu-3", "gpu-3" (whole), "gpu-3.1" (a share), "gpu-3+4" (two): the same in every command
  std::string name;
  std::string device;  // as in trial.json: "cpu", "cuda", "rocm"
  LockFile lock;
  std::string gpu_uuid = {};           // of several with commas; empty: a CPU core
  std::string gpu_selector = {};       // selects the GPUs that the worker sees
  std::int64_t reserved_mib = 0;       // of the GPU's memory
  std::int64_t reported_mib = 0;       // by its worker for the current trial; 0: nothing yet
  bool whole = false;                  // no other slot shares the GPU
  std::vector<int> bound_to = {};      // the cores that its worker is bound to; empty: any
  std::vector<LockFile> further = {};  // its other cores or GPUs
};

/// The cores that this process may use.
struct UsableCores {
  /// Core numbers in ascending order, at least one: those of the affinity mask, limited to the
  /// processor time that the control groups allow.
  std::vector<int> numbers;
  std::size_t in_mask = 1;
  std::optional<double> quota;        // processors; absent: no quota
  std::filesystem::path quota_group;  // base::GroupLimits
  /// True if the mask contains only some of the machine's cores (taskset, a Slurm job) and no quota
  /// limits it further.
  bool are_chosen = false;

  bool quota_counts() const { return numbers.size() < in_mask; }
};
/// `root`: as for base::group_limits().
UsableCores usable_cores(const std::filesystem::path& root = "/");

/// Returns the folder of this user's slot locks on this host, which is independent of any database:
/// PETLAB_SLOTS if it is set, otherwise /tmp/petlab-slots-UID. Creates it, for this user alone, if
/// it is missing. Throws Error if it cannot be created or belongs to another user.
std::filesystem::path slots_folder(const sweeps::Environment& environment);

/// True if a process of this user holds a lock on a file that was removed from `folder` and whose
/// name begins with `prefix`. This happens when temporary folders are cleaned. Searches /proc.
bool is_held_though_removed(const std::filesystem::path& folder, const std::string& prefix);

/// Hands out CPU slots. Each slot has one core per thread of its worker and is named after the
/// first: `cpu-4` begins at core 4. If more workers are requested than that allows, they share
/// cores: `cpu-4.1` is the second slot on core 4. Jobs with disjoint affinity therefore never wait
/// for each other. If the quota of a control group limits the number of slots, the locks are in a
/// folder for that group, since a quota belongs to no particular cores.
class CpuSlots {
 public:
  /// `slots`: maximum number of workers of this run, with `threads` threads each.
  CpuSlots(std::filesystem::path folder, UsableCores cores, std::int64_t slots,
           std::int64_t threads);

  /// Returns std::nullopt if this process or others hold all slots. Throws Error if a lock file
  /// cannot be created.
  std::optional<Slot> acquire() const;

  const std::filesystem::path& folder() const { return folder_; }
  /// The cores that slots can have: "cpu-3".
  std::vector<std::string> places() const;
  std::int64_t cores_of_slot() const { return static_cast<std::int64_t>(cores_of_slot_); }

 private:
  std::optional<Slot> acquire(int layer) const;

  std::filesystem::path folder_;
  UsableCores cores_;
  std::size_t cores_of_slot_;
  int layers_;
};

/// The number of workers with this many threads each that fit on the cores; at least 1.
std::int64_t workers_on(const UsableCores& cores, std::int64_t threads);

}  // namespace petlab::orchestrator
