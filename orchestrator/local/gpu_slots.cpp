#include "orchestrator/local/gpu_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/shallow_json.h"
#include "orchestrator/host/gpu_locks.h"

namespace petlab::orchestrator {
namespace {

constexpr int kMostShares = 64;
constexpr std::size_t kShareBytes = 127;
// A GPU of which others use no more than this, such as a desktop, still counts as unused.
constexpr std::int64_t kLittleMib = 1024;

std::int64_t usable_mib(const Gpu& gpu) {
  // The driver keeps part of the total for itself.
  return gpu.total_mib - gpu.total_mib / 50;
}

void write_share(const Slot& slot) {
  const nlohmann::ordered_json content = {{"reserved_mib", slot.reserved_mib},
                                          {"reported_mib", slot.reported_mib},
                                          {"whole", slot.whole}};
  // Always of the same size, so that no process reads a partial record.
  std::string text = content.dump();
  text.resize(std::max<std::size_t>(text.size(), kShareBytes), ' ');
  slot.lock.write(text + "\n");
}

// `uuids`: with commas between them.
bool is_among(const std::string& uuid, const std::string& uuids) {
  return ("," + uuids + ",").find("," + uuid + ",") != std::string::npos;
}

}  // namespace

// A GPU with room for a request, with its mutex held.
struct GpuSlots::Offer {
  Device* device;
  LockFile mutex;
  std::size_t held;
  std::int64_t room;
};

GpuSlots::GpuSlots(std::filesystem::path folder, std::vector<Gpu> gpus, int shares)
    : folder_(std::move(folder)), shares_(std::min(shares, kMostShares)) {
  for (const Gpu& gpu : gpus) devices_.push_back({gpu, 0});
  update(gpus, {});
}

std::filesystem::path GpuSlots::mutex_file(const Gpu& gpu) const {
  return folder_ / (gpu.uuid + ".lock");
}
std::filesystem::path GpuSlots::share_file(const Gpu& gpu, int number) const {
  return folder_ / fmt::format("{}.{}.lock", gpu.uuid, number);
}

std::vector<GpuSlots::Share> GpuSlots::shares(const Gpu& gpu,
                                              const std::filesystem::path& except) const {
  std::vector<Share> held;
  const int created = shares_created(gpu);
  for (int number = 0; number < created; ++number) {
    const std::filesystem::path file = share_file(gpu, number);
    if (file == except || !LockFile::is_held(file)) continue;
    std::ifstream in(file);
    const nlohmann::json content = base::shallow_json_or_none(in);
    // The owner may have died while writing this and left a live worker: assume the worst.
    Share share{gpu.total_mib, 0, true, content.is_object()};
    if (share.known) {
      share.reserved_mib = content.value("reserved_mib", gpu.total_mib);
      share.reported_mib = content.value("reported_mib", std::int64_t{0});
      share.whole = content.value("whole", true);
    }
    held.push_back(share);
  }
  return held;
}

// The whole folder may have been removed.
std::optional<LockFile> GpuSlots::lock_mutex(const Gpu& gpu) const {
  make_gpu_locks_folder(folder_);
  return LockFile::try_lock(mutex_file(gpu), LockFile::Users::all);
}

// The number of shares ever created, as recorded in the mutex file; kMostShares if unreadable.
int GpuSlots::shares_created(const Gpu& gpu) const {
  int created = kMostShares;
  std::ifstream(mutex_file(gpu)) >> created;
  return created > 0 && created <= kMostShares ? created : kMostShares;
}

// Returns -1 if there is none.
int GpuSlots::highest_share(const Gpu& gpu) const {
  int highest = kMostShares - 1;
  std::error_code error;
  while (highest >= 0 && !std::filesystem::exists(share_file(gpu, highest), error)) --highest;
  return highest;
}

// Share files are created in order and stay, and the mutex file records their number. If some are
// missing, the folder was cleaned, and a process may still hold a removed one.
bool GpuSlots::is_used_unseen(const Gpu& gpu, const LockFile& mutex) const {
  int created = -1;
  std::ifstream(mutex.file()) >> created;
  std::error_code error;
  int existing = 0;
  while (existing < created && std::filesystem::exists(share_file(gpu, existing), error))
    ++existing;
  return (created < 0 || existing < created) && is_held_though_removed(folder_, gpu.uuid + ".");
}

// The MiB that a new share of the GPU could get now; std::nullopt if no share can be created.
std::optional<std::int64_t> GpuSlots::room_for_share(const Device& device,
                                                     const std::vector<Share>& held) const {
  if (device.gone || held.size() >= static_cast<std::size_t>(shares_)) return std::nullopt;
  // A GPU whose memory is unknown is not shared.
  if (device.gpu.total_mib == 0) {
    return held.empty() ? std::optional(std::numeric_limits<std::int64_t>::max()) : std::nullopt;
  }
  std::int64_t left = usable_mib(device.gpu) - device.others_mib;
  for (const Share& share : held) {
    if (share.whole) return std::nullopt;
    left -= share.reserved_mib;
  }
  return left;
}

// The MiB that the GPU has for the request; std::nullopt if it cannot serve the request now.
std::optional<std::int64_t> GpuSlots::room(const Device& device, const std::vector<Share>& held,
                                           const SlotRequest& request) const {
  const std::optional<std::int64_t> left = room_for_share(device, held);
  if (!left) return std::nullopt;
  if (device.gpu.total_mib == 0) return 0;
  if (request.whole_device || !request.memory_mib) {
    const std::int64_t little = std::max(kLittleMib, device.gpu.total_mib / 20);
    return held.empty() && device.others_mib <= little ? left : std::nullopt;
  }
  return *left >= *request.memory_mib ? left : std::nullopt;
}

bool GpuSlots::may_have_room(const SlotRequest& request) const {
  return request.gpus <= std::count_if(devices_.begin(), devices_.end(), [&](const Device& device) {
           return may_use(device, request) &&
                  room({device.gpu, 0}, shares(device.gpu), request).has_value();
         });
}

void GpuSlots::use(const std::string& uuid, DeviceUse use, std::size_t failures) {
  for (Device& device : devices_) {
    if (device.gpu.uuid != uuid) continue;
    device.use = use;
    device.failures = failures;
    if (use == DeviceUse::never && kept_ == device.gpu.uuid) kept_.clear();
  }
}

std::size_t GpuSlots::usable() const {
  return static_cast<std::size_t>(
      std::count_if(devices_.begin(), devices_.end(),
                    [](const Device& device) { return device.use != DeviceUse::never; }));
}

// A device that the request avoids is used only if there is no other.
bool GpuSlots::may_use(const Device& device, const SlotRequest& request) const {
  if (device.use == DeviceUse::never) return false;
  // CUDA shows a process only one slice.
  if (request.gpus > 1 && device.gpu.slice >= 0) return false;
  const auto avoids = [&request](const Device& one) {
    return std::any_of(request.avoided.begin(), request.avoided.end(),
                       [&](const std::string& uuids) { return is_among(one.gpu.uuid, uuids); });
  };
  if (!avoids(device)) return true;
  return request.gpus > std::count_if(devices_.begin(), devices_.end(), [&](const Device& other) {
           return other.use != DeviceUse::never && !avoids(other);
         });
}

std::optional<Slot> GpuSlots::acquire(const SlotRequest& request) {
  if (request.gpus == 1) return acquire_one(request);
  SlotRequest one = request;
  one.whole_device = true;
  one.first = false;
  std::optional<Slot> all;
  for (std::int64_t taken = 0; taken < request.gpus; ++taken) {
    std::optional<Slot> slot = acquire_one(one);
    if (!slot) return std::nullopt;
    if (!all) {
      all = std::move(slot);
      continue;
    }
    all->name += "+" + slot->name.substr(slot->name.rfind('-') + 1);
    all->gpu_uuid += "," + slot->gpu_uuid;
    all->gpu_selector += "," + slot->gpu_selector;
    all->further.push_back(std::move(slot->lock));
  }
  return all;
}

std::optional<Slot> GpuSlots::acquire_one(const SlotRequest& request) {
  std::optional<Offer> best;
  bool all_looked_at = true;
  room_mib_ = 0;
  for (Device& device : devices_) {
    if (!may_use(device, request) || (!request.first && device.gpu.uuid == kept_)) continue;
    // The mutex is held for microseconds. A process that does not get it tries again a little
    // later.
    std::optional<LockFile> mutex = lock_mutex(device.gpu);
    if (!mutex) {
      all_looked_at = false;
      continue;
    }
    const std::vector<Share> held = shares(device.gpu);
    room_mib_ = std::max(room_mib_, room_for_share(device, held).value_or(0));
    const std::optional<std::int64_t> left = room(device, held, request);
    if (!left || is_used_unseen(device.gpu, *mutex)) continue;
    // Workers are spread over GPUs, since they also share a GPU's compute.
    const auto rank = [](const Device& of, std::size_t workers, std::int64_t room) {
      return std::tuple(of.use, of.failures, workers, -room);
    };
    if (!best || rank(device, held.size(), *left) < rank(*best->device, best->held, best->room)) {
      best.emplace(Offer{&device, std::move(*mutex), held.size(), *left});
    }
    // All unused GPUs are equally good.
    if (request.whole_device && device.use == DeviceUse::usual) break;
  }
  if (!best) {
    if (request.first && all_looked_at) keep_one_for(request);
    return std::nullopt;
  }
  const Gpu& gpu = best->device->gpu;
  for (int number = 0; number < kMostShares; ++number) {
    std::optional<LockFile> lock =
        LockFile::try_lock(share_file(gpu, number), LockFile::Users::all);
    if (!lock) continue;
    const bool all = request.whole_device || !request.memory_mib;
    const std::string name = gpu.name();
    Slot slot{request.whole_device ? name : fmt::format("{}.{}", name, number), gpu.kind,
              std::move(*lock)};
    slot.gpu_uuid = gpu.uuid;
    slot.gpu_selector = gpu.selector.empty() ? gpu.uuid : gpu.selector;
    slot.reserved_mib = all ? best->room : *request.memory_mib;
    slot.whole = request.whole_device;
    write_share(slot);
    best->mutex.write(fmt::format("{}\n", highest_share(gpu) + 1));
    if (request.first) kept_.clear();
    return slot;
  }
  return std::nullopt;
}

// Keeps a GPU for the first trial in line. Otherwise, small trials would make a large one wait
// forever.
void GpuSlots::keep_one_for(const SlotRequest& request) {
  const Device* best = nullptr;
  std::int64_t most = 0;
  for (const Device& device : devices_) {
    // Skips a GPU that has no room even without petlab's workers.
    if (!may_use(device, request) || !room(device, {}, request)) continue;
    std::int64_t left = usable_mib(device.gpu) - device.others_mib;
    for (const Share& share : shares(device.gpu)) left -= share.reserved_mib;
    if (device.gpu.uuid == kept_) return;
    if (best == nullptr || left > most) {
      best = &device;
      most = left;
    }
  }
  kept_ = best == nullptr ? std::string() : best->gpu.uuid;
}

void GpuSlots::report(Slot& slot, std::int64_t reported_mib) {
  if (slot.reported_mib == reported_mib) return;
  slot.reported_mib = reported_mib;
  slot.reserved_mib = std::max(slot.reserved_mib, reported_mib);
  write_share(slot);
}

Resized GpuSlots::resize(Slot& slot, std::int64_t reserved_mib) {
  const auto device = std::find_if(devices_.begin(), devices_.end(), [&](const Device& entry) {
    return entry.gpu.uuid == slot.gpu_uuid;
  });
  const std::optional<LockFile> mutex = lock_mutex(device->gpu);
  if (!mutex) return Resized::busy;
  std::int64_t left = usable_mib(device->gpu) - device->others_mib;
  for (const Share& share : shares(device->gpu, slot.lock.file())) left -= share.reserved_mib;
  const bool grows = reserved_mib > slot.reserved_mib;
  if (grows && (reserved_mib > left || is_used_unseen(device->gpu, *mutex))) {
    return Resized::no_room;
  }
  slot.reserved_mib = std::max(reserved_mib, slot.reported_mib);
  write_share(slot);
  return Resized::done;
}

std::map<std::string, std::int64_t> GpuSlots::reported() const {
  std::map<std::string, std::int64_t> sums;
  for (const Device& device : devices_) {
    std::int64_t& sum = sums[device.gpu.uuid];
    for (const Share& share : shares(device.gpu)) {
      if (!share.known) continue;
      // A worker with the whole GPU need not report its memory.
      sum += share.whole ? device.gpu.total_mib : share.reported_mib;
    }
  }
  return sums;
}

void GpuSlots::update(const std::vector<Gpu>& now,
                      const std::map<std::string, std::int64_t>& before) {
  const std::map<std::string, std::int64_t> after = reported();
  for (Device& device : devices_) {
    const auto found = std::find_if(now.begin(), now.end(),
                                    [&](const Gpu& gpu) { return gpu.uuid == device.gpu.uuid; });
    device.gone = found == now.end();  // it may have fallen off the bus
    if (device.gone) continue;
    device.gpu.used_mib = found->used_mib;
    // A worker that started or ended between the two queries counts as another process: for a while
    // its memory may be counted twice, but it is never missed.
    const auto earlier = before.find(device.gpu.uuid);
    const std::int64_t ours =
        std::min(earlier == before.end() ? 0 : earlier->second, after.at(device.gpu.uuid));
    device.others_mib = std::max<std::int64_t>(0, found->used_mib - ours);
  }
}

std::int64_t GpuSlots::largest_mib() const {
  std::int64_t largest = 0;
  for (const Device& device : devices_) {
    if (device.use != DeviceUse::never) largest = std::max(largest, usable_mib(device.gpu));
  }
  return largest;
}

std::string GpuSlots::state() const {
  std::string text;
  for (const Device& device : devices_) {
    const std::vector<Share> held = shares(device.gpu);
    std::int64_t reserved = 0;
    for (const Share& share : held) reserved += share.reserved_mib;
    text += fmt::format("{}gpu-{}: {} worker(s) with {} of {} MiB, others hold {} MiB",
                        text.empty() ? "" : "; ", device.gpu.index, held.size(), reserved,
                        usable_mib(device.gpu), device.others_mib);
  }
  return text;
}

}  // namespace petlab::orchestrator
