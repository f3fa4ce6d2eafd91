#include "orchestrator/running/device_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "orchestrator/records/decide.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kMostOfReason = 200;  // bytes

std::string shortened(std::string text) {
  if (text.size() <= kMostOfReason) return text;
  std::size_t cut = kMostOfReason;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "…";
}

}  // namespace

// Returns the GPU, or the host of a cluster; empty if there is neither.
std::string DeviceGuard::device_of(const LiveAttempt& live, const WorkerSlot& slot) {
  std::string device = slot.device;
  std::string name = slot.name.substr(0, slot.name.find('.'));
  if (context_.launcher.queue() != nullptr) {
    device = live.launch.host;
    name = "host " + device;
  }
  if (!device.empty()) known_.try_emplace(device, Known{name, ""});
  return device;
}

bool DeviceGuard::is_disabled(const WorkerSlot& slot) const {
  if (context_.launcher.queue() == nullptr) return enabled_gpus(slot) < slot.gpus;
  return slot.has_worker() && health_.is_disabled(slot.worker().launch().host);
}

std::int64_t DeviceGuard::enabled_gpus(const WorkerSlot& slot) const {
  std::int64_t enabled = slot.gpus;
  for (const std::string& gpu : gpus_of(slot.device)) {
    const bool disabled = std::any_of(known_.begin(), known_.end(), [&](const auto& known) {
      if (!health_.is_disabled(known.first)) return false;
      const std::vector<std::string> gpus = gpus_of(known.first);
      return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
    });
    if (disabled) --enabled;
  }
  return enabled;
}

void DeviceGuard::finished(const LiveAttempt& live, const WorkerSlot& slot) {
  const std::string device = device_of(live, slot);
  if (!device.empty()) health_.finished(device);
}

void DeviceGuard::failed(const LiveAttempt& live, WorkerSlot& slot, const std::string& why) {
  const std::string device = device_of(live, slot);
  if (device.empty()) return;
  known_.at(device).why = shortened(why);
  health_.failed(device, {live.trial, live.attempt.number});
  // Releases the slot, so that the next trial gets another device if one is free.
  const bool to_change = live.worker_ended || slot.state() != SlotState::serving ||
                         health_.failures(device) >= kFailuresThatDisable;
  if (to_change && context_.launcher.devices() > 1) slot.health.retired = true;
}

void DeviceGuard::settle_committed() {
  for (const DeviceHealth::Change& change : health_.take_changes()) {
    const Known& changed = known_.at(change.device);
    context_.observer.note(
        change.disabled
            ? fmt::format(
                  "{} is disabled for this run: {} different trials in a row failed there, while "
                  "others finish on {}; the failed ones are retried elsewhere (last failure: {})",
                  changed.name, health_.failures(change.device), known_.at(change.finished_on).name,
                  changed.why)
            : fmt::format("{} is enabled again: the trials that failed there also failed elsewhere",
                          changed.name));
  }
  for (const DeviceHealth::Failure& failure : health_.take_excused()) excuse(failure);
  std::map<std::string, Use> uses;
  for (const auto& [device, known] : known_) {
    const std::size_t failures = health_.failures(device);
    const DeviceUse use = health_.is_disabled(device) ? DeviceUse::never
                          : failures > 0              ? DeviceUse::last
                                                      : DeviceUse::usual;
    for (const std::string& gpu : gpus_of(device)) {
      uses[gpu].use = std::max(uses[gpu].use, use);
      uses[gpu].failures += failures;
    }
  }
  for (const auto& [gpu, use] : uses) {
    if (std::exchange(uses_[gpu], use) != use)
      context_.launcher.use_device(gpu, use.use, use.failures);
  }
}

void DeviceGuard::excuse(const DeviceHealth::Failure& failure) {
  SweepMember& member = state_.trials.at(failure.trial);
  if (member.standing == Standing::elsewhere) return;
  // Reads the current facts, since a retry must not undo a cancellation by the user.
  const results::TrialFacts facts = state_.trials.facts_of({failure.trial}).front();
  if (facts.cancelled || facts.retried_after >= failure.attempt ||
      (member.standing == Standing::settled && member.plan.state != sweeps::TrialState::failed)) {
    return;
  }
  decide(context_.store, context_.input.options.runs, member.id(),
         {protocol::Decision::What::retry, failure.attempt, context_.loop.wall_seconds(),
          fmt::format("attempt {} ran on a device that petlab disabled", failure.attempt)});
  member.retried_after = failure.attempt;
  member.unbegun = 0;
  if (member.standing == Standing::assigned) return;
  state_.trials.replan(failure.trial);
}

void DeviceGuard::bar_slots() {
  std::set<std::string> at_work;
  for (const auto& [name, slot] : state_.slots.all()) {
    if (!slot.device.empty() && slot.line() > 0) at_work.insert(slot.device);
  }
  for (auto& [name, slot] : state_.slots.all()) {
    slot.health.barred =
        is_disabled(slot) || (!slot.device.empty() && health_.must_wait(slot.device, at_work));
  }
}

bool DeviceGuard::may_have(const WorkerSlot& slot, std::size_t trial) const {
  if (slot.device.empty() || !health_.blames(slot.device, trial)) return true;
  return !state_.slots.any([&](const WorkerSlot& other) {
    return !other.device.empty() && other.device != slot.device && !other.health.broken &&
           other.gpus == slot.gpus && !health_.is_disabled(other.device) &&
           !health_.blames(other.device, trial);
  });
}

std::set<std::string> DeviceGuard::avoided_by(std::size_t trial) const {
  std::set<std::string> devices;
  for (const auto& [device, known] : known_) {
    if (health_.blames(device, trial)) devices.insert(device);
  }
  return devices;
}

}  // namespace petlab::orchestrator
