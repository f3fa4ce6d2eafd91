#include "results/host_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

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

std::filesystem::path lock_of(const std::filesystem::path& database) {
  return database.string() + ".lock";
}

base::FileDescriptor opened(const std::filesystem::path& file) {
  base::FileDescriptor descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (descriptor) return descriptor;
  throw Error(fmt::format(
      "{}: cannot be opened: {}; make its folder writable or name another database with --db",
      file.string(), std::strerror(errno)));
}

// False if another process has it.
bool lock(const base::FileDescriptor& descriptor, const std::filesystem::path& file) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(descriptor.get(), F_OFD_SETLK, &whole) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw Error(fmt::format(
      "{}: the file cannot be locked: {}; name a database on a file system with locks with --db",
      file.string(), std::strerror(errno)));
}

// "n1 process 7\n"; empty if nobody holds the lock.
std::string content_of(const base::FileDescriptor& descriptor) {
  std::array<char, 512> content = {};
  const ssize_t got = pread(descriptor.get(), content.data(), content.size(), 0);
  return {content.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::string host_of(const std::string& content) { return content.substr(0, content.find(' ')); }

std::string last_written(const std::filesystem::path& database) {
  struct stat status = {};
  std::tm local = {};
  if (stat(database.c_str(), &status) != 0) return "an unknown time";
  localtime_r(&status.st_mtime, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
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

HostLock::HostLock(const std::filesystem::path& database) : file_(opened(lock_of(database))) {
  const std::filesystem::path file = lock_of(database);
  const bool locked = lock(file_, file);
  const std::string holder = content_of(file_);
  const std::string host = host_of(holder);
  // If the holder was on this host it has died, since its lock is free.
  if (locked && (host.empty() || host == host_name())) {
    const std::string entry = fmt::format("{} process {}\n", host_name(), getpid());
    if (ftruncate(file_.get(), 0) == 0 &&
        pwrite(file_.get(), entry.data(), entry.size(), 0) == static_cast<ssize_t>(entry.size()) &&
        fsync(file_.get()) == 0) {
      return;
    }
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  }
  const std::string or_else =
      host.empty() || host == host_name()
          ? std::string()
          : fmt::format(", or, if {0} is dead, run petlab retry --dead-host {0}", host);
  throw DatabaseHeld(fmt::format(
      "{}: {} writes it, last at {}; on a network file system only one may: wait for it{}",
      database.string(), holder.empty() ? "another process" : holder.substr(0, holder.find('\n')),
      last_written(database), or_else));
}

HostLock::~HostLock() {
  // An empty file is free. After a removal, two processes could lock different files of this name.
  if (ftruncate(file_.get(), 0) == 0) fsync(file_.get());
}

}  // namespace petlab::results::internal

namespace petlab::results {

void release_database_of(const std::string& host, const std::filesystem::path& database) {
  const std::filesystem::path file = internal::lock_of(internal::real_path(database));
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  const base::FileDescriptor descriptor = internal::opened(file);
  if (!internal::lock(descriptor, file) ||
      internal::host_of(internal::content_of(descriptor)) != host) {
    return;
  }
  if (ftruncate(descriptor.get(), 0) != 0 || fsync(descriptor.get()) != 0) {
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  }
}

}  // namespace petlab::results
