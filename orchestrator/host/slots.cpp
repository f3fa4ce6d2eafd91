#include "orchestrator/host/slots.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "orchestrator/host/error.h"

namespace petlab::orchestrator {

namespace {

// A file with content is the one that everybody has locked since it was made. An empty one is new,
// perhaps in the place of one that was removed while it was held.
std::optional<LockFile> lock_slot(const std::filesystem::path& folder, const std::string& name) {
  ::mkdir(folder.c_str(), 0700);  // removed as well, perhaps; else the lock says what is wrong
  const std::filesystem::path file = folder / (name + ".lock");
  std::optional<LockFile> lock = LockFile::try_lock(file);
  std::error_code error;
  if (!lock || std::filesystem::file_size(file, error) > 0) return lock;
  if (is_held_though_removed(folder, name + ".lock")) {
    std::filesystem::remove(file, error);
    return std::nullopt;
  }
  lock->write("the lock of a slot\n");
  return lock;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::filesystem::path slots_folder(const sweeps::Environment& environment) {
  std::filesystem::path folder;
  if (const auto named = environment("PETLAB_SLOTS")) {
    folder = *named;
  } else {
    folder = fmt::format("/tmp/petlab-slots-{}", ::getuid());
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error(
        fmt::format("{}: the folder of slot locks cannot be made: {} (PETLAB_SLOTS names "
                    "another)",
                    folder.string(), std::strerror(errno)));
  }
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::getuid()) {
    throw Error(fmt::format(
        "{}: the folder of slot locks is not a folder of this user (PETLAB_SLOTS names another)",
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
    // Of another user, or gone by now: not to be looked at.
    std::error_code unreadable;
    for (std::filesystem::directory_iterator file(process->path() / "fd", unreadable);
         !unreadable && file != end; file.increment(unreadable)) {
      std::error_code closed;
      const std::string name = std::filesystem::read_symlink(file->path(), closed).string();
      if (!name.starts_with(begin) || !name.ends_with(" (deleted)")) continue;
      if (LockFile::is_held(file->path())) return true;
    }
  }
  return false;
}

std::optional<Slot> acquire_cpu_slot(const std::filesystem::path& folder, int count) {
  for (int number = 0; number < count; ++number) {
    const std::string name = fmt::format("cpu-{}", number);
    if (auto lock = lock_slot(folder, name)) {
      return Slot{name, "cpu", std::move(*lock)};
    }
  }
  return std::nullopt;
}

}  // namespace petlab::orchestrator
