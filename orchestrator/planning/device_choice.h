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
  /// nvidia-smi is there and did not answer as it should: no quiet reason to be slow.
  bool failed = false;
  bool hide_gpus = false;  // from the workers, where there may be some
  /// What is odd about a GPU without being an error.
  std::vector<std::string> notes;

  /// Workers at once where the user says no number: one a core, or `pack` a GPU.
  std::int64_t slots(std::int64_t pack) const;
};

/// Asks nvidia-smi, where GPUs are not ruled out. Throws std::invalid_argument for a
/// CUDA_VISIBLE_DEVICES that names no GPU, and where `wanted` is gpu and there is none.
DeviceChoice choose_devices(Device wanted, const WorkerDescription& worker,
                            const sweeps::Environment& environment);

}  // namespace petlab::orchestrator
