#include "orchestrator/host/gpu_locks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "orchestrator/host/error.h"
#include "orchestrator/host/slots.h"

namespace petlab::orchestrator {
namespace {

constexpr mode_t kForAll = S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO;

bool is_for_all(const std::filesystem::path& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         (status.st_mode & kForAll) == kForAll;
}

}  // namespace

bool make_gpu_locks_folder(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) return errno == EEXIST;
  // chmod() sets the mode regardless of the umask.
  return !is_for_all(folder.parent_path()) || ::chmod(folder.c_str(), kForAll) == 0;
}

std::filesystem::path gpu_locks_folder(const sweeps::Environment& environment,
                                       const std::vector<std::filesystem::path>& places) {
  if (environment("PETLAB_SLOTS")) return slots_folder(environment);
  std::vector<std::string> tried;
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path folder = place / "petlab-gpus";
    if (is_for_all(place) && make_gpu_locks_folder(folder) && is_for_all(folder)) return folder;
    tried.push_back(folder.string());
  }
  throw Error(
      fmt::format("no folder for GPU locks is writable by all users of this host: tried {}; set "
                  "PETLAB_SLOTS to a folder for this user alone",
                  fmt::join(tried, ", ")));
}

}  // namespace petlab::orchestrator
