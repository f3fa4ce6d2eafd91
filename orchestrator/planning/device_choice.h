#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"
#include "orchestrator/planning/worker_description.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// What workers of a run compute on.
enum class Device {
  automatic,  ///< GPUs where there are some and the worker can use them, else CPU cores
  gpu,        ///< GPUs, or it is an error
  cpu,        ///< CPU cores
};

/// What a run computes on, on this machine.
struct DeviceChoice {
  std::vector<Gpu> gpus;  // empty: CPU cores
  std::string why_not;    // why there are none
  /// There are GPUs that the worker could use, but they could not be queried: no quiet reason to be
  /// slow.
  bool failed = false;
  bool hide_gpus = false;  // from the workers: they are on CPU cores
  bool unused = false;     // there are GPUs, which the worker cannot use
  /// What is odd about a GPU without being an error.
  std::vector<std::string> notes;

  /// Parallel workers where the user gives no number: as many as the cores have room for with
  /// `threads` each, or `pack` a GPU.
  std::int64_t slots(std::int64_t pack, std::int64_t threads) const;
};

/// Asks the tools of all kinds of GPUs that the worker can use, unless `wanted` is cpu. Throws
/// std::invalid_argument for a CUDA_VISIBLE_DEVICES that names no GPU, and where `wanted` is gpu
/// and there is none.
DeviceChoice choose_devices(Device wanted, const WorkerDescription& worker,
                            const sweeps::Environment& environment);

}  // namespace petlab::orchestrator
