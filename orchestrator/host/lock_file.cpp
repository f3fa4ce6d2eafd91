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

namespace {

[[noreturn]] void refuse_to_lock(const std::filesystem::path& file) {
  throw Error(fmt::format(
      "{}: the file cannot be locked: {}; its folder must be on a file system with flock (Lustre: "
      "mount option flock; NFS: lockd); choose other folders with --runs and PETLAB_SLOTS",
      file.string(), std::strerror(errno)));
}

// Opens the file, and creates it only if it is missing: in a sticky folder, Linux refuses O_CREAT
// on another user's file (fs.protected_regular).
base::FileDescriptor open_or_make(const std::filesystem::path& file, LockFile::Users users) {
  for (;;) {
    base::FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd || errno != ENOENT) return fd;
    fd = base::FileDescriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd && users == LockFile::Users::all) ::fchmod(fd.get(), 0666);  // despite the umask
    if (fd || errno != EEXIST) return fd;
  }
}

}  // namespace

std::optional<LockFile> LockFile::try_lock(const std::filesystem::path& file, Users users) {
  for (;;) {
    base::FileDescriptor fd = open_or_make(file, users);
    if (!fd) {
      throw Error(fmt::format("{}: the lock file cannot be opened: {}", file.string(),
                              std::strerror(errno)));
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return std::nullopt;
      refuse_to_lock(file);
    }
    // A process that cleans up removes the file while it holds the lock. A lock on a removed file
    // is worthless, so this tries again.
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
  if (!fd && errno == ENOENT) return false;
  // If the lock cannot be checked, its holder must not be considered dead.
  if (!fd) {
    throw Error(
        fmt::format("{}: the lock file cannot be opened: {}", file.string(), std::strerror(errno)));
  }
  return is_held(fd, file);
}

bool LockFile::is_held(const base::FileDescriptor& fd, const std::filesystem::path& file) {
  // A shared lock, so that two processes that only check do not see each other as holders.
  while (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return true;
    if (errno != EINTR) refuse_to_lock(file);
  }
  return false;
}

void LockFile::write(std::string_view content) const {
  // The file is not truncated first: ext4 would then flush it to disk when it is closed.
  const auto size = static_cast<ssize_t>(content.size());
  const ssize_t wrote = ::pwrite(fd_.get(), content.data(), content.size(), 0);
  if (wrote != size || ::ftruncate(fd_.get(), size) != 0) {
    throw Error(fmt::format("{}: the lock file cannot be written: {}", file_.string(),
                            std::strerror(wrote < 0 || wrote == size ? errno : ENOSPC)));
  }
}

}  // namespace petlab::orchestrator
