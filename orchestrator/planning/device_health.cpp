#include "orchestrator/planning/device_health.h"

#include <algorithm>
#include <utility>

namespace petlab::orchestrator {

const DeviceHealth::Device* DeviceHealth::find(const std::string& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
}

void DeviceHealth::finished(const std::string& device) {
  Device& its = devices_[device];
  // A worker may have begun before its device was disabled: one success does not outweigh that.
  if (its.disabled) return;
  its.failed.clear();
  its.last_finished = true;
  judge();
}

void DeviceHealth::failed(const std::string& device, const Failure& failure) {
  Device& its = devices_[device];
  its.last_finished = false;
  if (at_fault_.contains(failure.trial)) return;
  const auto [first, is_new] = failed_on_.try_emplace(failure.trial, device);
  if (!is_new && first->second != device) {
    at_fault_.insert(failure.trial);
    for (auto& [name, one] : devices_) one.failed.erase(failure.trial);
  } else {
    its.failed[failure.trial] = failure.attempt;
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
  const Device* its = find(device);
  return its != nullptr && its->disabled;
}

bool DeviceHealth::blames(const std::string& device, std::size_t trial) const {
  const Device* its = find(device);
  return its != nullptr && its->failed.contains(trial);
}

std::size_t DeviceHealth::failures(const std::string& device) const {
  const Device* its = find(device);
  return its == nullptr ? 0 : its->failed.size();
}

bool DeviceHealth::must_wait(const std::string& device,
                             const std::set<std::string>& at_work) const {
  if (failures(device) < kFailuresThatDisable) return false;
  return std::any_of(at_work.begin(), at_work.end(), [&](const std::string& other) {
    return other != device && !is_disabled(other) && failures(other) < kFailuresThatDisable;
  });
}

}  // namespace petlab::orchestrator
