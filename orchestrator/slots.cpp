#include "orchestrator/slots.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "orchestrator/error.h"

namespace petlab::orchestrator {

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

std::optional<Slot> acquire_cpu_slot(const std::filesystem::path& folder, int count) {
  for (int number = 0; number < count; ++number) {
    const std::string name = fmt::format("cpu-{}", number);
    if (auto lock = LockFile::try_lock(folder / (name + ".lock"))) {
      return Slot{name, "cpu", std::move(*lock)};
    }
  }
  return std::nullopt;
}

}  // namespace petlab::orchestrator
