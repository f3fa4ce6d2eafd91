#include "orchestrator/planning/device_health.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace petlab::orchestrator {

std::vector<std::string> gpus_of(const std::string& device) {
  std::vector<std::string> gpus;
  std::istringstream in(device);
  for (std::string gpu; std::getline(in, gpu, ',');) gpus.push_back(gpu);
  return gpus;
}

namespace {

bool share_gpu(const std::string& a, const std::string& b) {
  const std::vector<std::string> gpus = gpus_of(a);
  const std::vector<std::string> others = gpus_of(b);
  return std::any_of(gpus.begin(), gpus.end(), [&](const std::string& gpu) {
    return std::find(others.begin(), others.end(), gpu) != others.end();
  });
}

}  // namespace

const DeviceHealth::Device* DeviceHealth::find(const std::string& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
}

void DeviceHealth::finished(const std::string& device) {
  Device& state = devices_[device];
  // The worker may have started before its device was disabled, so one success does not enable it
  // again.
  if (state.disabled) return;
  state.failed.clear();
  state.last_finished = true;
  judge();
}

void DeviceHealth::failed(const std::string& device, const Failure& failure) {
  Device& state = devices_[device];
  state.last_finished = false;
  if (at_fault_.contains(failure.trial)) return;
  const auto [first, is_new] = failed_on_.try_emplace(failure.trial, device);
  // Slots with several GPUs may have a bad one in common.
  if (!is_new && first->second != device && !share_gpu(first->second, device)) {
    at_fault_.insert(failure.trial);
    for (auto& [name, other] : devices_) other.failed.erase(failure.trial);
  } else {
    state.failed[failure.trial] = failure.attempt;
  }
  judge();
}

void DeviceHealth::judge() {
  for (auto& [name, device] : devices_) {
    const bool suspicious = device.failed.size() >= kFailuresThatDisable;
    if (device.disabled && !suspicious) {
      device.disabled = false;
      changes_.push_back({name, false, ""});
    }
    if (device.disabled || !suspicious) continue;
    const auto other =
        std::find_if(devices_.begin(), devices_.end(), [&, &name = name](const auto& entry) {
          return entry.first != name && !entry.second.disabled && entry.second.last_finished;
        });
    if (other == devices_.end()) continue;
    device.disabled = true;
    changes_.push_back({name, true, other->first});
  }
}

std::vector<DeviceHealth::Failure> DeviceHealth::take_excused() {
  std::vector<Failure> excused;
  for (const auto& [name, device] : devices_) {
    if (!device.disabled) continue;
    for (const auto& [trial, attempt] : device.failed) {
      if (excused_.emplace(trial, attempt).second) excused.push_back({trial, attempt});
    }
  }
  return excused;
}

bool DeviceHealth::is_disabled(const std::string& device) const {
  const Device* state = find(device);
  return state != nullptr && state->disabled;
}

bool DeviceHealth::blames(const std::string& device, std::size_t trial) const {
  const Device* state = find(device);
  return state != nullptr && state->failed.contains(trial);
}

std::size_t DeviceHealth::failures(const std::string& device) const {
  const Device* state = find(device);
  return state == nullptr ? 0 : state->failed.size();
}

bool DeviceHealth::must_wait(const std::string& device,
                             const std::set<std::string>& at_work) const {
  if (failures(device) < kFailuresThatDisable) return false;
  return std::any_of(at_work.begin(), at_work.end(), [&](const std::string& other) {
    return other != device && !is_disabled(other) && failures(other) < kFailuresThatDisable;
  });
}

}  // namespace petlab::orchestrator
