#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace petlab::results::internal {

/// Resolves the links of `file` as far as it exists. SQLite puts its auxiliary files next to the
/// result.
std::filesystem::path real_path(const std::filesystem::path& file);

/// True if `file` is, or would be, on a file system shared between machines (NFS, SMB, Lustre,
/// GPFS, BeeGFS, AFS, Ceph, 9P, FUSE). SQLite's WAL mode requires memory shared by all users.
bool on_network_file_system(const std::filesystem::path& file);

/// The right to write a database on a network file system: a locked file `<database>.lock` with the
/// holder's host and process. The contents count as well, because locks between hosts may not work.
/// Held until destroyed; if the process dies, other processes of its host can take it.
///
/// A holder may state a lease, which it must renew in time. Once a lease has ended, a process of
/// another host may take the lock. Times are those of the file system, so clocks may differ.
class HostLock {
 public:
  /// Throws DatabaseHeld naming the holder, and Error if the file cannot be written. `lease`: 0 for
  /// none. `takes_ended_leases`: whether to take the lock from a vanished host.
  explicit HostLock(const std::filesystem::path& database, std::chrono::seconds lease = {},
                    bool takes_ended_leases = false);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  /// Renews the lease if a quarter of it has passed. Throws Error if it has ended, or another
  /// process has the lock: nothing may be written any more.
  void renew();
  /// The hosts whose leases ended, until forget_vanished(), also if this process dies before.
  const std::vector<std::string>& vanished() const { return vanished_; }
  void forget_vanished();

 private:
  void write(const std::string& holder);

  const std::filesystem::path path_;
  base::FileDescriptor file_;
  std::string holder_;   // the first line
  std::string content_;  // of the file, as written last
  std::vector<std::string> vanished_;
  std::chrono::seconds lease_;
  double renewed_ = 0;  // seconds since the boot, suspensions included
};

}  // namespace petlab::results::internal
