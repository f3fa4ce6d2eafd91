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

/// Hands out GPUs and shares of them, so that what is reserved on each, by all petlabs of this user
/// on this host, and what other processes hold of it never exceeds its memory. The state is in the
/// folder of slot locks: `UUID.lock`, held while shares of that GPU change, with the number of
/// shares that were ever made in it, and `UUID.N.lock`, one a share, with what is reserved for it
/// in the file. Where one of these was removed while somebody held it, the GPU is left alone. A
/// worker that inherits the lock of its slot keeps the memory reserved beyond the orchestrator's
/// death. Use from one thread.
class GpuSlots {
 public:
  /// `shares`: workers at once on a GPU, at most; 1: each has one for itself.
  GpuSlots(std::filesystem::path folder, std::vector<Gpu> gpus, int shares);

  /// std::nullopt: no GPU has room now. Where the request is the first in line, one GPU is then
  /// kept from all later requests until it is granted. Throws Error where a lock file cannot be
  /// made.
  std::optional<Slot> acquire(const SlotRequest& request);
  /// False where acquire() finds no room whatever others hold: then nvidia-smi need not be asked.
  bool may_have_room(const SlotRequest& request) const;
  /// Notes what the slot's worker reported of the trial that it is at; 0: nothing yet, or it has
  /// none. It counts at once, whoever changes that GPU: what is reported and not reserved is
  /// reserved, even beyond what there is room for.
  void report(Slot& slot, std::int64_t reported_mib);
  /// Changes what is reserved for a slot, to no less than is reported.
  Resized resize(Slot& slot, std::int64_t reserved_mib);
  /// After acquire() found no room: the most memory that a share could have had.
  std::int64_t room_mib() const { return room_mib_; }
  /// True while the slot's GPU is kept for the first in line.
  bool is_kept(const Slot& slot) const { return slot.gpu_uuid == kept_; }

  /// From now on the GPU of that UUID is used so.
  void use(const std::string& uuid, DeviceUse use);
  std::size_t size() const { return devices_.size(); }

  /// What our workers reported of each GPU; to be asked before nvidia-smi is.
  std::map<std::string, std::int64_t> reported() const;
  /// What nvidia-smi says now: what is used beyond `before` and what is reported now belongs to
  /// others.
  void update(const std::vector<Gpu>& now, const std::map<std::string, std::int64_t>& before);

  /// Most memory that a worker can have on any of the GPUs.
  std::int64_t largest_mib() const;
  /// "gpu-0: 2 shares, 70000 of 81559 MiB reserved, 500 MiB used by others; …"
  std::string state() const;

 private:
  struct Share {
    std::int64_t reserved_mib = 0;
    std::int64_t reported_mib = 0;
    bool whole = false;
    bool known = true;  // false: its file was being written
  };
  struct Device {
    Gpu gpu;
    std::int64_t others_mib = 0;
    DeviceUse use = DeviceUse::usual;
    bool gone = false;  // not listed when its tool was asked last
  };
  struct Offer;
  std::filesystem::path mutex_file(const Gpu& gpu) const;
  std::filesystem::path share_file(const Gpu& gpu, int number) const;
  /// The shares that anybody holds but `except`.
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
  int shares_made(const Gpu& gpu) const;

  std::filesystem::path folder_;
  std::vector<Device> devices_;
  int shares_;
  std::string kept_;  // UUID
  std::int64_t room_mib_ = 0;
};

}  // namespace petlab::orchestrator
