#include "orchestrator/running/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sweeps/memory.h"

namespace petlab::orchestrator {
namespace {

constexpr auto kLookForRoom = std::chrono::milliseconds(200);

// The memory of a worker has settled when it has not grown for this part of its steps, or when it
// has written a checkpoint, since it has evaluated by then.
constexpr std::int64_t kSettledParts = 20;

constexpr std::int64_t kAllMemory = std::numeric_limits<std::int64_t>::max();

}  // namespace

// Returns the memory that a trial is expected to need, preferring measurements to the user's value,
// and that to the formula. std::nullopt: unknown, or more than any share, so it gets all that a
// device has.
std::optional<std::int64_t> Shares::memory_of(std::size_t trial) const {
  const std::optional<std::int64_t> measured = state_.trials.shapes().memory_mib(trial);
  const std::optional<std::int64_t>& expected = context_.input.options.trial_memory_mib;
  const std::optional<std::int64_t> memory = measured
                                                 ? std::optional(sweeps::with_margin(*measured))
                                             : expected ? expected
                                                        : estimated(trial);
  if (memory && *memory > devices_.largest_share_mib()) return std::nullopt;
  return memory;
}

std::optional<std::int64_t> Shares::estimated(std::size_t trial) const {
  if (!context_.input.options.has_memory_formula) return std::nullopt;
  const auto [found, is_new] = estimates_.try_emplace(trial);
  if (is_new) {
    const sweeps::MemoryEstimate estimate = sweeps::estimate_memory(
        context_.input.sweep, state_.trials.at(trial).what->config, sweeps::MemoryDevice::gpu);
    found->second = sweeps::with_margin(sweeps::to_mib(estimate.total()));
  }
  return found->second;
}

SlotRequest Shares::request_for(std::size_t trial) const {
  SlotRequest request;
  request.whole_device = state_.trials.schedule().trial(trial).whole_device;
  if (!request.whole_device) request.memory_mib = memory_of(trial);
  request.avoided = guard_.avoided_by(trial);
  return request;
}

// True if the slot's share fits the trial. A share that is far larger than needed is released,
// since two trials may fit there.
bool Shares::suits(const WorkerSlot& slot, const DeviceShare& share, std::size_t trial) const {
  if (!guard_.may_have(slot, trial)) return false;
  const SlotRequest request = request_for(trial);
  if (request.whole_device || slot.share.whole) return request.whole_device && slot.share.whole;
  if (!request.memory_mib) return slot.share.all && share.memory_mib == slot.share.granted_mib;
  return *request.memory_mib <= share.memory_mib && *request.memory_mib >= share.memory_mib / 2;
}

bool Shares::acquire(const std::function<bool()>& may_take) {
  const EventLoop::Time now = context_.loop.now();
  if (state_.trials.schedule().waiting() == 0 || now - looked_ < kLookForRoom) return false;
  looked_ = now;
  std::set<std::size_t> intended;
  for (const auto& [name, slot] : state_.slots.all()) {
    if (slot.share.intended) intended.insert(*slot.share.intended);
  }
  // After a trial found no room, no trial of at least its size is tried.
  std::int64_t too_much = kAllMemory;
  bool first = true;
  bool added = false;
  const auto size = [this](std::size_t trial) {
    if (state_.trials.schedule().trial(trial).whole_device) return kAllMemory;
    return memory_of(trial).value_or(kAllMemory - 1);
  };
  for (;;) {
    const std::optional<std::size_t> trial =
        state_.trials.schedule().best(now, [&](std::size_t candidate) {
          return !intended.contains(candidate) && (first || size(candidate) < too_much);
        });
    if (!trial) return added;
    WorkerSlot* slot = idle_slot(*trial, now);
    if (slot == nullptr && state_.slots.size() >= context_.input.options.slots) return added;
    if (slot == nullptr) {
      if (!may_take()) return added;
      SlotRequest request = request_for(*trial);
      request.first = first;
      const std::optional<std::string> name = devices_.acquire_share(request);
      if (!name) {
        // Skips all sizes that do not fit, since there may be thousands.
        too_much = std::min(size(*trial), devices_.room_mib() + 1);
        first = false;
        continue;
      }
      slot = &state_.slots.add(*name);
      slot->share.granted_mib = devices_.share(*name).memory_mib;
      slot->share.whole = request.whole_device;
      slot->share.all = !request.memory_mib;
      added = true;
    }
    slot->share.intended = *trial;
    intended.insert(*trial);
  }
}

WorkerSlot* Shares::idle_slot(std::size_t trial, EventLoop::Time now) {
  for (auto& [name, slot] : state_.slots.all()) {
    const bool idle = slot.line() == 0 && !slot.share.intended;
    if (!idle || !slot.takes_claims(state_.trials.schedule(), now)) continue;
    const DeviceShare share = devices_.share(name);
    if (!share.kept && suits(slot, share, trial)) return &slot;
  }
  return nullptr;
}

void Shares::choose(Choice& chosen, EventLoop::Time now) {
  Schedule& schedule = state_.trials.schedule();
  std::set<const WorkerSlot*> served;
  for (auto& [name, slot] : state_.slots.all()) {
    const std::optional<std::size_t> trial = std::exchange(slot.share.intended, std::nullopt);
    if (!trial || !slot.takes_claims(schedule, now) || !schedule.remove(*trial)) continue;
    chosen.emplace_back(&slot, *trial);
    slot.group = schedule.trial(*trial).group;
    served.insert(&slot);
  }
  for (auto& [name, slot] : state_.slots.all()) {
    if (served.contains(&slot) || !slot.takes_claims(schedule, now)) continue;
    const DeviceShare share = devices_.share(name);
    std::size_t line = slot.line();
    const std::size_t most = share.kept ? 0 : state_.slots.line_length(slot, schedule);
    while (line < most) {
      const std::optional<std::size_t> trial = schedule.take(
          slot.group, line > 0, now,
          [&, &slot = slot](std::size_t candidate) { return suits(slot, share, candidate); });
      if (!trial) break;
      chosen.emplace_back(&slot, *trial);
      slot.group = schedule.trial(*trial).group;
      ++line;
      if (schedule.trial(*trial).alone) break;
    }
    // The waiting trials need another slot, perhaps the room of this one.
    if (line == 0 && slot.ended.empty() && (share.kept || schedule.best(now, {}))) {
      slot.health.retired = true;
    }
  }
}

void Shares::memory_reported(LiveAttempt& live, WorkerSlot& slot, const IngestUpdate& update,
                             bool grew) {
  Reported& reported = live.reported;
  const bool finished = update.over && std::holds_alternative<protocol::Finished>(*update.over);
  if (reported.device_memory_mib == 0) return;
  const auto peak = static_cast<std::int64_t>(std::ceil(reported.device_memory_mib));
  const bool no_longer_grows =
      update.progress && update.progress->step - reported.grew_at >=
                             std::max<std::int64_t>(1, update.progress->of / kSettledParts);
  const bool settles = !reported.settled && (no_longer_grows || update.checkpoint || finished);
  reported.settled = reported.settled || settles;
  if (reported.settled && (settles || grew)) state_.trials.shapes().needed(live.trial, peak);
  if (slot.share.whole || !(settles || grew)) return;
  state_.slots.report_front(slot);
  const std::int64_t reserved = devices_.share(slot.name).memory_mib;
  resize(slot, reported.settled ? sweeps::with_margin(peak) : std::max(reserved, peak), &live);
}

// Reserves `wanted`, or more if another trial in the worker's line needs it, not counting `except`.
// They are all of about the same size, or they would not suit the slot.
void Shares::resize(WorkerSlot& slot, std::int64_t wanted, const LiveAttempt* except) {
  const std::int64_t reserved = devices_.share(slot.name).memory_mib;
  std::int64_t all = wanted;
  for (const auto* line : {&slot.given, &slot.ready}) {
    for (const LiveAttempt* other : *line) {
      if (other != except) all = std::max(all, memory_of(other->trial).value_or(reserved));
    }
  }
  const bool busy = devices_.resize_share(slot.name, all) == Resized::busy;
  slot.share.to_reserve = busy ? std::optional(wanted) : std::nullopt;
}

void Shares::ran_out_of_memory(const LiveAttempt& live, const WorkerSlot& slot) {
  state_.trials.schedule().set_alone(live.trial, true);
  if (slot.share.whole) return;
  // The expected memory of trials of this shape was too small.
  if (memory_of(live.trial)) {
    state_.trials.shapes().needed(live.trial, devices_.share(slot.name).memory_mib * 3 / 2);
  }
}

void Shares::retry_reservations() {
  for (auto& [name, slot] : state_.slots.all()) {
    if (slot.share.to_reserve) resize(slot, *slot.share.to_reserve);
  }
}

}  // namespace petlab::orchestrator
