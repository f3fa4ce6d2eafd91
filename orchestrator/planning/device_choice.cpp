#include "orchestrator/planning/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "orchestrator/host/slots.h"

namespace petlab::orchestrator {

std::int64_t DeviceChoice::slots(std::int64_t pack) const {
  return gpus.empty() ? usable_cores() : std::ssize(gpus) * pack;
}

DeviceChoice choose_devices(Device wanted, const WorkerDescription& worker,
                            const sweeps::Environment& environment) {
  GpuList list;
  if (wanted == Device::cpu) {
    list.why_none = "--device is cpu";
  } else {
    list = find_gpus(environment, kGpuTimeout);
  }
  const bool can = worker.devices.empty() || std::find(worker.devices.begin(), worker.devices.end(),
                                                       "cuda") != worker.devices.end();
  DeviceChoice choice;
  choice.why_not = list.why_none;
  choice.failed = list.failed;
  choice.notes = std::move(list.notes);
  if (choice.why_not.empty() && !can) {
    choice.why_not = fmt::format("{} says that it does not compute on GPUs", worker.name);
  }
  if (wanted == Device::gpu && !choice.why_not.empty()) {
    throw std::invalid_argument(fmt::format("--device is gpu, but {}", choice.why_not));
  }
  if (!choice.why_not.empty()) {
    choice.hide_gpus = wanted == Device::cpu || !list.gpus.empty();
  } else {
    choice.gpus = std::move(list.gpus);
  }
  return choice;
}

}  // namespace petlab::orchestrator
