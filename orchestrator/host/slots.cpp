#include "orchestrator/host/slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/control_groups.h"
#include "orchestrator/host/error.h"

namespace petlab::orchestrator {

namespace {

// Returns the core numbers in this process's affinity mask; empty if the kernel does not report it.
std::vector<int> affinity_mask() {
  // The kernel refuses a set that is smaller than its own.
  for (int room = 1024; room <= 1 << 20; room *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(room)), [](cpu_set_t* mask) { CPU_FREE(mask); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    CPU_ZERO_S(size, set.get());
    if (::sched_getaffinity(0, size, set.get()) != 0) continue;
    std::vector<int> cores;
    for (int core = 0; core < room; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), size, set.get())) cores.push_back(core);
    }
    return cores;
  }
  return {};
}

// Names a control group by device and inode, which no two existing groups share. Its path differs
// between a container and its host.
std::string folder_of_group(const std::filesystem::path& group) {
  struct stat status {};
  return ::stat(group.c_str(), &status) == 0
             ? fmt::format("group-{}-{}", status.st_dev, status.st_ino)
             : std::string("group");
}

// Locks a slot. A lock file with content is the one that all processes have used since it was
// created. An empty one is new, and may replace a file that was removed while it was locked.
std::optional<LockFile> lock_slot(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  // The folder may have been removed, too. If this fails, try_lock() reports why.
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path file = folder / (name + ".lock");
  std::optional<LockFile> lock = LockFile::try_lock(file);
  if (!lock || std::filesystem::file_size(file, error) > 0) return lock;
  if (is_held_though_removed(folder, name + ".lock")) {
    std::filesystem::remove(file, error);
    return std::nullopt;
  }
  lock->write("the lock of a slot\n");
  return lock;
}

}  // namespace

UsableCores usable_cores(const std::filesystem::path& root) {
  UsableCores cores;
  cores.numbers = affinity_mask();
  if (cores.numbers.empty()) cores.numbers.push_back(0);
  cores.in_mask = cores.numbers.size();
  const base::GroupLimits limits = base::group_limits(root);
  cores.quota = limits.processors;
  if (cores.quota && *cores.quota < static_cast<double>(cores.in_mask)) {
    cores.quota_group = limits.processors_group;
    cores.numbers.resize(std::max<std::size_t>(1, static_cast<std::size_t>(*cores.quota)));
  }
  cores.are_chosen =
      !cores.quota_counts() && static_cast<long>(cores.in_mask) < ::sysconf(_SC_NPROCESSORS_ONLN);
  return cores;
}

std::int64_t workers_on(const UsableCores& cores, std::int64_t threads) {
  return std::max<std::int64_t>(1, std::ssize(cores.numbers) / threads);
}

std::filesystem::path slots_folder(const sweeps::Environment& environment) {
  std::filesystem::path folder;
  if (const auto named = environment("PETLAB_SLOTS")) {
    folder = *named;
  } else {
    folder = fmt::format("/tmp/petlab-slots-{}", ::getuid());
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error(fmt::format(
        "{}: the folder of slot locks cannot be created: {} (choose another with PETLAB_SLOTS)",
        folder.string(), std::strerror(errno)));
  }
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::getuid()) {
    throw Error(fmt::format(
        "{}: the folder of slot locks belongs to another user (choose another with PETLAB_SLOTS)",
        folder.string()));
  }
  return folder;
}

bool is_held_though_removed(const std::filesystem::path& folder, const std::string& prefix) {
  std::error_code error;
  const std::string begin = (std::filesystem::weakly_canonical(folder, error) / prefix).string();
  for (std::filesystem::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const std::string pid = process->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    // Unreadable processes belong to another user or have ended.
    std::error_code unreadable;
    for (std::filesystem::directory_iterator file(process->path() / "fd", unreadable);
         !unreadable && file != end; file.increment(unreadable)) {
      std::error_code closed;
      const std::string name = std::filesystem::read_symlink(file->path(), closed).string();
      if (!name.starts_with(begin) || !name.ends_with(" (deleted)")) continue;
      // The process may have ended, which the kernel reports as EACCES.
      const base::FileDescriptor fd(::open(file->path().c_str(), O_RDONLY | O_CLOEXEC));
      if (fd && LockFile::is_held(fd, file->path())) return true;
    }
  }
  return false;
}

CpuSlots::CpuSlots(std::filesystem::path folder, UsableCores cores, std::int64_t slots,
                   std::int64_t threads)
    : folder_(std::move(folder)),
      cores_(std::move(cores)),
      cores_of_slot_(std::min(static_cast<std::size_t>(threads), cores_.numbers.size())) {
  const std::int64_t slots_per_layer = workers_on(cores_, threads);
  layers_ = static_cast<int>((slots + slots_per_layer - 1) / slots_per_layer);
  // Workers that share cores are not bound to them: the scheduler moves them to idle cores. The
  // same holds for cores that other processes use, too.
  if (layers_ > 1) cores_.are_chosen = false;
  if (cores_.quota_counts()) folder_ /= folder_of_group(cores_.quota_group);
}

std::vector<std::string> CpuSlots::places() const {
  std::vector<std::string> places;
  for (const int core : cores_.numbers) places.push_back(fmt::format("cpu-{}", core));
  return places;
}

std::optional<Slot> CpuSlots::acquire() const {
  for (int layer = 0; layer < layers_; ++layer) {
    if (auto slot = acquire(layer)) return slot;
  }
  return std::nullopt;
}

std::optional<Slot> CpuSlots::acquire(int layer) const {
  std::vector<LockFile> locks;
  std::vector<int> acquired;
  for (const int core : cores_.numbers) {
    const std::string name =
        layer == 0 ? fmt::format("cpu-{}", core) : fmt::format("cpu-{}.{}", core, layer);
    if (auto lock = lock_slot(folder_, name)) {
      locks.push_back(std::move(*lock));
      acquired.push_back(core);
    }
    if (acquired.size() < cores_of_slot_) continue;
    Slot slot{locks.front().file().stem().string(), "cpu", std::move(locks.front())};
    locks.erase(locks.begin());
    slot.further = std::move(locks);
    if (cores_.are_chosen) slot.bound_to = std::move(acquired);
    return slot;
  }
  return std::nullopt;
}

}  // namespace petlab::orchestrator
