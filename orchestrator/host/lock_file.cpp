#include "orchestrator/host/lock_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "orchestrator/host/error.h"

namespace petlab::orchestrator {

std::optional<LockFile> LockFile::try_lock(const std::filesystem::path& file) {
  for (;;) {
    base::FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) {
      throw Error(fmt::format("{}: the lock file cannot be opened: {}", file.string(),
                              std::strerror(errno)));
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return std::nullopt;
      throw Error(
          fmt::format("{}: the file cannot be locked: {}", file.string(), std::strerror(errno)));
    }
    // Who cleans up removes the file while it holds the lock: a lock on a removed file is none.
    struct stat opened {};
    struct stat named {};
    if (::fstat(fd.get(), &opened) == 0 && ::stat(file.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      return LockFile(file, std::move(fd));
    }
  }
}

bool LockFile::is_held(const std::filesystem::path& file) {
  const base::FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  // A shared lock, so that two who only look do not see each other.
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void LockFile::write(std::string_view content) const {
  // Not emptied first: ext4 would write the file to the disk when it is closed.
  const auto size = static_cast<ssize_t>(content.size());
  const ssize_t wrote = ::pwrite(fd_.get(), content.data(), content.size(), 0);
  if (wrote != size || ::ftruncate(fd_.get(), size) != 0) {
    throw Error(fmt::format("{}: the lock file cannot be written: {}", file_.string(),
                            std::strerror(wrote < 0 || wrote == size ? errno : ENOSPC)));
  }
}

}  // namespace petlab::orchestrator
