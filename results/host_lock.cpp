#include "results/host_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "results/database_held.h"
#include "results/error.h"

namespace petlab::results::internal {
namespace {

/// f_type of statfs(2).
constexpr std::array<unsigned long, 12> kNetwork = {
    0x6969,      // NFS
    0x517b,      // SMB
    0xfe534d42,  // SMB2
    0xff534d42,  // CIFS
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x5346414f,  // AFS
    0x00c36400,  // Ceph
    0x01021997,  // 9P
    0x65735546,  // FUSE: of any kind, so assume a network
    0xaad7aaea,  // PanFS
};

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::filesystem::path real_path(const std::filesystem::path& file) {
  std::error_code error;
  // Also follows links to missing files, so that a new database is created at the target.
  std::filesystem::path real = file;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(real, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(real, error);
    if (error) break;
    real = target.is_absolute() ? target : real.parent_path() / target;
  }
  const std::filesystem::path found = std::filesystem::weakly_canonical(real, error);
  return error ? real : found;
}

bool on_network_file_system(const std::filesystem::path& file) {
  const std::filesystem::path folder = base::folder_of(file);
  struct statfs status = {};
  if (statfs(folder.c_str(), &status) != 0) return false;
  const auto type = static_cast<unsigned long>(status.f_type) & 0xffffffffUL;
  return std::find(kNetwork.begin(), kNetwork.end(), type) != kNetwork.end();
}

HostLock::HostLock(const std::filesystem::path& database) {
  const std::string file = database.string() + ".lock";
  file_ = base::FileDescriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) {
    throw Error(fmt::format(
        "{}: cannot be opened: {}; make its folder writable or name another database with --db",
        file, std::strerror(errno)));
  }
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool locked = fcntl(file_.get(), F_OFD_SETLK, &whole) == 0;
  if (!locked && errno != EAGAIN && errno != EACCES) {
    throw Error(fmt::format(
        "{}: the file cannot be locked: {}; name a database on a file system with locks with --db",
        file, std::strerror(errno)));
  }
  std::array<char, 512> content = {};
  const ssize_t got = pread(file_.get(), content.data(), content.size(), 0);
  const std::string holder(content.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string host = holder.substr(0, holder.find(' '));
  // If the holder was on this host it has died, since its lock is free.
  if (locked && (host.empty() || host == host_name())) {
    const std::string entry = fmt::format("{} process {}\n", host_name(), getpid());
    if (ftruncate(file_.get(), 0) == 0 &&
        pwrite(file_.get(), entry.data(), entry.size(), 0) == static_cast<ssize_t>(entry.size()) &&
        fsync(file_.get()) == 0) {
      return;
    }
    throw Error(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
  }
  throw DatabaseHeld(
      fmt::format("{}: {} writes it; on a network file system only one may: wait for it, or, where "
                  "it has ended, "
                  "remove {}",
                  database.string(),
                  holder.empty() ? "another process" : holder.substr(0, holder.find('\n')), file));
}

HostLock::~HostLock() {
  // An empty file is free. After a removal, two processes could lock different files of this name.
  if (ftruncate(file_.get(), 0) == 0) fsync(file_.get());
}

}  // namespace petlab::results::internal
