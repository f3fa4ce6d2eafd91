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
  std::string gpu_uuid = {};       // empty: a CPU core
  std::string gpu_selector = {};   // makes that GPU the only one that the worker sees
  std::int64_t reserved_mib = 0;   // of the GPU's memory
  std::int64_t reported_mib = 0;   // what its worker said of the trial that it is at; 0: nothing
  bool whole = false;              // nobody else gets a share of the GPU
  std::vector<int> bound_to = {};  // the cores that its worker is bound to; empty: any
  std::vector<LockFile> further_cores =
      {};  // of a worker with several threads, but the first core's
};

/// The cores that this process may use.
struct UsableCores {
  /// Ascending, at least one: the affinity mask's, but no more than the control groups allow
  /// processor time for.
  std::vector<int> numbers;
  std::size_t in_mask = 1;
  std::optional<double> quota;        // processors; absent: none
  std::filesystem::path quota_group;  // base::GroupLimits
  /// The mask has a part of the machine's cores (taskset, a Slurm job), and no quota below it.
  bool are_chosen = false;

  bool quota_counts() const { return numbers.size() < in_mask; }
};
/// `root`: base::group_limits.
UsableCores usable_cores(const std::filesystem::path& root = "/");

/// The folder of the slots' locks, one a user and host, apart from any database: PETLAB_SLOTS where
/// that is set, else /tmp/petlab-slots-UID. Made, for this user alone, where it is missing. Throws
/// Error where it cannot be made or belongs to somebody else.
std::filesystem::path slots_folder(const sweeps::Environment& environment);

/// True where a process of this user holds a lock on a file that was removed from `folder` and
/// whose name begins with `prefix`: temporary folders are cleaned. Looks through /proc.
bool is_held_though_removed(const std::filesystem::path& folder, const std::string& prefix);

/// Hands out CPU slots. Each is a core, or as many as a worker has threads, and named after the
/// first: `cpu-4` is core 4. Where more workers are wanted than that gives, the cores are shared:
/// `cpu-4.1` is the second slot on core 4. So jobs with disjoint affinity never wait for each
/// other. Where a control group's quota decides how many there are, the locks are in a folder of
/// that group, since its cores are no particular ones.
class CpuSlots {
 public:
  /// `slots`: workers of this run at most, with `threads` each.
  CpuSlots(std::filesystem::path folder, UsableCores cores, std::int64_t slots,
           std::int64_t threads);

  /// std::nullopt: all are taken, by this process or others. Throws Error where a lock file cannot
  /// be made.
  std::optional<Slot> acquire() const;

 private:
  std::optional<Slot> acquire(int layer) const;

  std::filesystem::path folder_;
  UsableCores cores_;
  std::size_t cores_of_slot_;
  int layers_;
};

/// Workers with so many threads each that the cores have room for; at least 1.
std::int64_t workers_on(const UsableCores& cores, std::int64_t threads);

}  // namespace petlab::orchestrator
