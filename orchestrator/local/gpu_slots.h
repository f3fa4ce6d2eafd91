#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"
#include "orchestrator/host/slots.h"
#include "orchestrator/launching/launcher.h"

namespace petlab::orchestrator {

/// Hands out GPUs and shares of them. On each GPU, the memory that all petlab processes with this
/// folder reserve plus the memory that other processes use never exceeds the total. The state is in
/// the folder of slot locks: `UUID.lock` is held while the shares of that GPU change, and contains
/// the number of shares ever created; `UUID.N.lock` is held by one share, and contains its
/// reservation. A GPU whose lock file was removed while it was held is not used. A worker that
/// inherits the lock of its slot keeps the memory reserved even after the orchestrator dies. Use
/// from one thread.
class GpuSlots {
 public:
  /// `shares`: maximum number of parallel workers on a GPU; 1: each worker has a GPU for itself.
  GpuSlots(std::filesystem::path folder, std::vector<Gpu> gpus, int shares);

  /// Returns std::nullopt if no GPU has room now. If the request is the first in line, one GPU is
  /// then kept from all later requests until it is granted. Of a request for several GPUs, it
  /// returns all or none, and keeps none. Throws Error if a lock file cannot be created.
  std::optional<Slot> acquire(const SlotRequest& request);
  /// False if acquire() would find no room even if other processes used no memory, so that
  /// nvidia-smi need not be called.
  bool may_have_room(const SlotRequest& request) const;
  /// Records the memory that the slot's worker reported for its current trial; 0: no report yet, or
  /// no trial. It counts immediately for all processes: memory that is reported but not reserved
  /// becomes reserved, even if there is no room for it.
  void report(Slot& slot, std::int64_t reported_mib);
  /// Changes the reservation of a slot, to no less than its worker reported.
  Resized resize(Slot& slot, std::int64_t reserved_mib);
  /// After acquire() found no room: the most memory that a share could have got.
  std::int64_t room_mib() const { return room_mib_; }
  /// True while the slot's GPU is kept for the first in line.
  bool is_kept(const Slot& slot) const { return slot.gpu_uuid == kept_; }

  /// Sets how a GPU is used from now on. Of two used last, the one with fewer failures goes first.
  void use(const std::string& uuid, DeviceUse use, std::size_t failures = 0);
  /// The number of GPUs that are not disabled.
  std::size_t usable() const;

  /// The memory that petlab's workers report, by GPU. To be called before nvidia-smi is.
  std::map<std::string, std::int64_t> reported() const;
  /// Updates the GPUs from a new list by nvidia-smi. Only memory that workers reported both
  /// `before` the query and now counts as petlab's; the rest of the used memory belongs to other
  /// processes.
  void update(const std::vector<Gpu>& now, const std::map<std::string, std::int64_t>& before);

  /// The most memory that a worker can have on any of the GPUs.
  std::int64_t largest_mib() const;
  /// For example "gpu-0: 2 worker(s) with 70000 of 79928 MiB, others hold 500 MiB; …".
  std::string state() const;

 private:
  struct Share {
    std::int64_t reserved_mib = 0;
    std::int64_t reported_mib = 0;
    bool whole = false;
    bool known = true;  // false: its file is incomplete
  };
  struct Device {
    Gpu gpu;
    std::int64_t others_mib = 0;
    DeviceUse use = DeviceUse::usual;
    std::size_t failures = 0;  // of trials there
    bool gone = false;         // not in the last list of its tool
  };
  struct Offer;
  std::optional<Slot> acquire_one(const SlotRequest& request);
  std::filesystem::path mutex_file(const Gpu& gpu) const;
  std::filesystem::path share_file(const Gpu& gpu, int number) const;
  /// The shares that any process holds, except `except`.
  std::vector<Share> shares(const Gpu& gpu, const std::filesystem::path& except = {}) const;
  bool may_use(const Device& device, const SlotRequest& request) const;
  std::optional<std::int64_t> room_for_share(const Device& device,
                                             const std::vector<Share>& held) const;
  std::optional<std::int64_t> room(const Device& device, const std::vector<Share>& held,
                                   const SlotRequest& request) const;
  void keep_one_for(const SlotRequest& request);
  std::optional<LockFile> lock_mutex(const Gpu& gpu) const;
  bool is_used_unseen(const Gpu& gpu, const LockFile& mutex) const;
  int highest_share(const Gpu& gpu) const;
  int shares_created(const Gpu& gpu) const;

  std::filesystem::path folder_;
  std::vector<Device> devices_;
  int shares_;
  std::string kept_;  // UUID
  std::int64_t room_mib_ = 0;
};

}  // namespace petlab::orchestrator
