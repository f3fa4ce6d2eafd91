// The part of Run's loop that is for devices that several workers share: how much memory a trial
// needs, which slot it may have, and what becomes of a slot's reservation while its worker runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "orchestrator/running/run_impl.h"

namespace petlab::orchestrator {
namespace {

// Beyond what was measured: another seed draws other batches, and contexts differ a little.
std::int64_t with_margin(std::int64_t peak_mib) { return peak_mib + peak_mib / 10 + 64; }

// A worker has ramped up when it has needed no more for this part of its steps, or has written a
// checkpoint: then it has evaluated, too.
constexpr std::int64_t kSettledParts = 20;

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

// std::nullopt: nothing is known, so it gets all that a device has.
std::optional<std::int64_t> Run::Impl::memory_of(std::size_t trial) const {
  const std::int64_t measured = shape_memory_mib_[shapes_[trial]];
  const std::optional<std::int64_t> memory =
      measured > 0 ? std::optional(with_margin(measured)) : options_.trial_memory_mib;
  if (memory && *memory > launcher_.largest_share_mib()) return std::nullopt;
  return memory;
}

SlotRequest Run::Impl::request_for(std::size_t trial) const {
  SlotRequest request;
  request.whole_device = schedule_.task(trial).whole_device;
  if (!request.whole_device) request.memory_mib = memory_of(trial);
  return request;
}

// A slot that has far more than the trial needs is given back: two trials may fit there.
bool Run::Impl::suits(const SlotState& slot, const DeviceShare& share, std::size_t trial) const {
  const SlotRequest request = request_for(trial);
  if (request.whole_device || slot.whole) return request.whole_device && slot.whole;
  if (!request.memory_mib) return slot.all && share.memory_mib == slot.granted_mib;
  return *request.memory_mib <= share.memory_mib && *request.memory_mib >= share.memory_mib / 2;
}

// An idle slot that some trial in line suits, or room for a new one, for each of the best trials.
void Run::Impl::acquire_shares() {
  const Clock::time_point now = Clock::now();
  if (schedule_.waiting() == 0 || now - looked_for_slots_ < std::chrono::milliseconds(200)) return;
  looked_for_slots_ = now;
  std::set<std::size_t> intended;
  for (const auto& [name, slot] : slots_) {
    if (slot.intended) intended.insert(*slot.intended);
  }
  // Of what has no room, nothing larger is tried.
  std::int64_t too_much = kAll;
  bool first = true;
  const auto size = [this](std::size_t trial) {
    const SlotRequest request = request_for(trial);
    return request.whole_device ? kAll : request.memory_mib.value_or(kAll - 1);
  };
  for (;;) {
    const std::optional<std::size_t> trial = schedule_.best(now, [&](std::size_t one) {
      return !intended.contains(one) && (first || size(one) < too_much);
    });
    if (!trial) return;
    SlotState* slot = idle_share(*trial, now);
    if (slot == nullptr && static_cast<std::int64_t>(slots_.size()) >= options_.slots) return;
    if (slot == nullptr) {
      SlotRequest request = request_for(*trial);
      request.first = first;
      const std::optional<std::string> name = launcher_.acquire_share(request);
      if (!name) {
        too_much = size(*trial);
        first = false;
        continue;
      }
      slot = &add_slot(*name);
      slot->granted_mib = launcher_.share(*name).memory_mib;
      slot->whole = request.whole_device;
      slot->all = !request.memory_mib;
      fruitless_ = false;
    }
    slot->intended = *trial;
    intended.insert(*trial);
  }
}

Run::Impl::SlotState* Run::Impl::idle_share(std::size_t trial, Clock::time_point now) {
  for (auto& [name, slot] : slots_) {
    if (!slot.given.empty() || !slot.ready.empty() || slot.intended || !takes_claims(slot, now)) {
      continue;
    }
    const DeviceShare share = launcher_.share(name);
    if (!share.kept && suits(slot, share, trial)) return &slot;
  }
  return nullptr;
}

void Run::Impl::choose_shares(std::vector<std::pair<SlotState*, std::size_t>>& chosen,
                              Clock::time_point now) {
  std::set<const SlotState*> served;
  for (auto& [name, slot] : slots_) {
    const std::optional<std::size_t> trial = std::exchange(slot.intended, std::nullopt);
    if (!trial || !takes_claims(slot, now) || !schedule_.remove(*trial)) continue;
    chosen.emplace_back(&slot, *trial);
    slot.group = schedule_.task(*trial).group;
    served.insert(&slot);
  }
  for (auto& [name, slot] : slots_) {
    if (served.contains(&slot) || !takes_claims(slot, now)) continue;
    const DeviceShare share = launcher_.share(name);
    std::size_t line = slot.given.size() + slot.ready.size();
    const std::size_t most = share.kept ? 0 : line_length(slot);
    while (line < most) {
      const std::optional<std::size_t> trial = schedule_.take(
          slot.group, line > 0, now, [&](std::size_t one) { return suits(slot, share, one); });
      if (!trial) break;
      chosen.emplace_back(&slot, *trial);
      slot.group = schedule_.task(*trial).group;
      ++line;
      if (schedule_.task(*trial).alone) break;
    }
    // What waits needs another slot, perhaps the room of this one.
    if (line == 0 && slot.gone.empty() && (share.kept || schedule_.best(now, {}))) {
      slot.retired = true;
    }
  }
}

void Run::Impl::memory_reported(Live& live, SlotState& slot, const IngestUpdate& update) {
  const auto take = [&](const std::optional<double>& memory) {
    if (!memory || *memory <= live.device_memory_mib) return false;
    live.device_memory_mib = *memory;
    return true;
  };
  bool grew = update.progress && take(update.progress->device_memory_mib);
  if (grew) live.grew_at = update.progress->step;
  const auto* finished = update.over ? std::get_if<protocol::Finished>(&*update.over) : nullptr;
  if (finished != nullptr) grew = take(finished->device_memory_mib) || grew;
  if (!launcher_.shares_devices() || live.device_memory_mib == 0) return;
  const auto peak = static_cast<std::int64_t>(std::ceil(live.device_memory_mib));
  const bool still =
      update.progress && update.progress->step - live.grew_at >=
                             std::max<std::int64_t>(1, update.progress->of / kSettledParts);
  const bool settles = !live.settled && (still || update.checkpoint || finished != nullptr);
  live.settled = live.settled || settles;
  if (live.settled && (settles || grew)) {
    std::int64_t& measured = shape_memory_mib_[shapes_[live.trial]];
    measured = std::max(measured, peak);
  }
  if (slot.whole || !(settles || grew)) return;
  report_front(slot);
  const std::int64_t reserved = launcher_.share(slot.name).memory_mib;
  resize_share(slot, live.settled ? with_margin(peak) : std::max(reserved, peak), &live);
}

// To what one trial needs, and the others of the worker's line but `but`: they are of about the
// same size, or they would not suit the slot.
void Run::Impl::resize_share(SlotState& slot, std::int64_t wanted, const Live* but) {
  const std::int64_t reserved = launcher_.share(slot.name).memory_mib;
  std::int64_t all = wanted;
  for (const auto* line : {&slot.given, &slot.ready}) {
    for (const Live* other : *line) {
      if (other != but) all = std::max(all, memory_of(other->trial).value_or(reserved));
    }
  }
  const bool busy = launcher_.resize_share(slot.name, all) == Resized::busy;
  slot.to_reserve = busy ? std::optional(wanted) : std::nullopt;
}

// Between two trials a worker may give memory back, so what it reported of the one before says
// nothing: what it holds counts as others' until it reports.
void Run::Impl::report_front(const SlotState& slot) {
  if (!launcher_.shares_devices()) return;
  const double reported =
      slot.given.empty() || !slot.worker ? 0 : slot.given.front()->device_memory_mib;
  launcher_.report_memory(slot.name, static_cast<std::int64_t>(std::ceil(reported)));
}

void Run::Impl::ran_out_of_memory(const Live& live, SlotState& slot) {
  schedule_.set_alone(live.trial, launcher_.shares_devices());
  if (!launcher_.shares_devices() || slot.whole) return;
  // What was thought to be enough for its like was not.
  std::int64_t& measured = shape_memory_mib_[shapes_[live.trial]];
  if (memory_of(live.trial)) {
    measured = std::max(measured, launcher_.share(slot.name).memory_mib * 3 / 2);
  }
}

}  // namespace petlab::orchestrator
