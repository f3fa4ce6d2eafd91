#include "results/host_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sstream>
#include <system_error>

#include "base/files.h"
#include "base/shown.h"
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

// A lease counts as ended after this many times its length, so that a holder that renews it late
// is never overtaken.
constexpr double kMargin = 1.25;

// The two lines of the file: "n1 process 7 lease 600", empty if nobody holds the lock, and "after
// n2 n3".
struct Content {
  explicit Content(const std::string& text) {
    std::istringstream lines(text);
    std::getline(lines, holder);
    std::istringstream words(holder);
    std::string word;
    words >> host >> word >> word >> word >> lease;
    std::string after;
    std::getline(lines, after);
    std::istringstream hosts(after);
    hosts >> word;
    while (hosts >> word) vanished.push_back(word);
  }
  std::string holder;
  std::string host;
  std::int64_t lease = 0;  // seconds; 0: none
  std::vector<std::string> vanished;
};

// How long ago the file was written, by the clock of its file system.
double seconds_without_renewal(const base::FileDescriptor& descriptor,
                               const std::filesystem::path& file) {
  const std::string probe = fmt::format("{}.now-{}", file.string(), getpid());
  struct stat now = {};
  struct stat then = {};
  const bool known = base::write_all(opened(probe).get(), "now") &&
                     stat(probe.c_str(), &now) == 0 && fstat(descriptor.get(), &then) == 0;
  unlink(probe.c_str());
  if (!known) throw Error(fmt::format("{}: cannot be written: {}", probe, std::strerror(errno)));
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return seconds(now.st_mtim) - seconds(then.st_mtim);
}

double seconds_since_boot() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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

HostLock::HostLock(const std::filesystem::path& database, std::chrono::seconds lease,
                   bool takes_ended_leases)
    : path_(lock_of(database)), file_(opened(path_)), lease_(lease) {
  const bool locked = lock(file_, path_);
  const Content found(content_of(file_));
  const bool ours = found.host.empty() || found.host == host_name();
  const bool ended =
      takes_ended_leases && !ours && found.lease > 0 &&
      seconds_without_renewal(file_, path_) > kMargin * static_cast<double>(found.lease);
  // If the holder was on this host it has died, since its lock is free.
  if (locked && (ours || ended)) {
    vanished_ = found.vanished;
    if (!ours) vanished_.push_back(found.host);
    holder_ = fmt::format("{} process {}", host_name(), getpid());
    if (lease_.count() > 0) holder_ += fmt::format(" lease {}", lease_.count());
    write(holder_);
    return;
  }
  std::string or_else;
  if (!ours && found.lease > 0) {
    or_else =
        fmt::format(", or until it has not renewed its lease of {} s for long enough", found.lease);
  } else if (!ours) {
    or_else = fmt::format(", or, if {0} is dead, run petlab retry --dead-host {0}", found.host);
  }
  throw DatabaseHeld(fmt::format(
      "{}: {} writes it, last at {}; on a network file system only one may: wait for it{}",
      database.string(), found.holder.empty() ? "another process" : found.holder,
      last_written(database), or_else));
}

HostLock::~HostLock() {
  // An empty file is free. After a removal, two processes could lock different files of this name.
  if (content_of(file_) != content_) return;  // taken over
  try {
    write("");
  } catch (const Error&) {
    // The next process finds that this one is dead.
  }
}

void HostLock::write(const std::string& holder) {
  std::string content = holder.empty() ? std::string() : holder + "\n";
  if (!vanished_.empty())
    content = fmt::format("{}\nafter {}\n", holder, fmt::join(vanished_, " "));
  // In this order, the file of a holder is never empty: other hosts may see any moment.
  if (pwrite(file_.get(), content.data(), content.size(), 0) !=
          static_cast<ssize_t>(content.size()) ||
      ftruncate(file_.get(), static_cast<off_t>(content.size())) != 0 || fsync(file_.get()) != 0) {
    throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
  }
  content_ = std::move(content);
  renewed_ = seconds_since_boot();
}

void HostLock::renew() {
  if (lease_.count() == 0) return;
  const double passed = seconds_since_boot() - renewed_;
  const auto lease = static_cast<double>(lease_.count());
  if (passed < lease / 4) return;
  if (passed > lease) {
    throw Error(fmt::format(
        "{}: the lease of {} s ended {:.0f} s ago, so another host may have the database: run the "
        "same command again",
        path_.string(), lease_.count(), passed - lease));
  }
  const std::string now = content_of(opened(path_));
  if (now != content_) {
    const std::string holder = Content(now).holder;
    throw Error(fmt::format("{}: {} has the database now, because this run did not renew its lease",
                            path_.string(),
                            holder.empty() ? "another process" : base::printable(holder)));
  }
  write(holder_);
}

void HostLock::forget_vanished() {
  vanished_.clear();
  write(holder_);
}

}  // namespace petlab::results::internal

namespace petlab::results {

void release_database_of(const std::string& host, const std::filesystem::path& database) {
  const std::filesystem::path file = internal::lock_of(internal::real_path(database));
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  const base::FileDescriptor descriptor = internal::opened(file);
  if (!internal::lock(descriptor, file) ||
      internal::Content(internal::content_of(descriptor)).host != host) {
    return;
  }
  if (ftruncate(descriptor.get(), 0) != 0 || fsync(descriptor.get()) != 0) {
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  }
}

}  // namespace petlab::results
