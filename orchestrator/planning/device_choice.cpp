#include "orchestrator/planning/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "orchestrator/host/slots.h"

namespace petlab::orchestrator {

std::int64_t DeviceChoice::slots(std::int64_t pack, std::int64_t threads) const {
  return gpus.empty() ? workers_on(usable_cores(), threads) : std::ssize(gpus) * pack;
}

DeviceChoice choose_devices(Device wanted, const WorkerDescription& worker,
                            const sweeps::Environment& environment) {
  DeviceChoice choice;
  // Hides GPUs from workers on CPU cores: there is one worker per core, and each would use every
  // GPU.
  choice.hide_gpus = true;
  if (wanted == Device::cpu) {
    choice.why_not = "--device is cpu";
    return choice;
  }
  for (const GpuKind& kind : gpu_kinds()) {
    const bool can =
        worker.devices.empty() ||
        std::find(worker.devices.begin(), worker.devices.end(), kind.name) != worker.devices.end();
    GpuList list = find_gpus(kind, environment, kGpuTimeout);
    if (!list.gpus.empty() && can) {
      choice.gpus = std::move(list.gpus);
      choice.notes = std::move(list.notes);
      choice.why_not.clear();
      choice.failed = choice.hide_gpus = false;
      return choice;
    }
    if (!list.gpus.empty()) {
      choice.unused = true;
      list.why_none = fmt::format("{} reports that it does not compute on {}", worker.name,
                                  kind.name == "cuda" ? "GPUs" : "AMD GPUs");
    }
    // Keeps the first reason; a failure takes precedence over other reasons.
    const bool fails = list.failed && can;
    if (choice.why_not.empty() || (fails && !choice.failed)) choice.why_not = list.why_none;
    choice.failed = choice.failed || fails;
  }
  if (wanted == Device::gpu) {
    throw std::invalid_argument(fmt::format("--device is gpu, but {}", choice.why_not));
  }
  return choice;
}

}  // namespace petlab::orchestrator
