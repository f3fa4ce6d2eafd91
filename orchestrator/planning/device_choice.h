#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"
#include "orchestrator/planning/worker_description.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// The devices that the user requests for a run's workers.
enum class Device {
  automatic,  ///< GPUs if there are any that the worker can use, otherwise CPU cores
  gpu,        ///< GPUs; an error if there are none
  cpu,        ///< CPU cores
};

/// The devices of this machine that a run uses.
struct DeviceChoice {
  std::vector<Gpu> gpus;  // empty: CPU cores
  std::string why_not;    // why there are no GPUs
  /// True if there are GPUs that the worker could use, but they could not be queried. The caller
  /// must not fall back to slow CPU cores silently.
  bool failed = false;
  bool hide_gpus = false;  // from the workers, which run on CPU cores
  bool unused = false;     // there are GPUs, but the worker cannot use them
  /// Oddities of GPUs that are not errors.
  std::vector<std::string> notes;

  /// The default number of parallel workers: `pack` per GPU, or as many as fit on the CPU cores
  /// with `threads` threads each.
  std::int64_t slots(std::int64_t pack, std::int64_t threads) const;
};

/// Looks for GPUs of each kind until it finds some that the worker can use, unless `wanted` is cpu.
/// Throws std::invalid_argument if CUDA_VISIBLE_DEVICES names a missing GPU, or if `wanted` is gpu
/// and there is none.
DeviceChoice choose_devices(Device wanted, const WorkerDescription& worker,
                            const sweeps::Environment& environment);

}  // namespace petlab::orchestrator
