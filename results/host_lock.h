#pragma once

#include <filesystem>
#include <string>

namespace petlab::results::internal {

/// `file` with all links followed, as far as it exists: where SQLite puts what stands beside it.
std::filesystem::path real_path(const std::filesystem::path& file);

/// True where `file` lies, or would lie, on a file system between machines (NFS, SMB, Lustre, GPFS,
/// BeeGFS, AFS, Ceph, 9P, FUSE): SQLite's WAL mode needs memory that all its users share.
bool on_network_file_system(const std::filesystem::path& file);

/// The right to write a database on a network file system: a locked file `<database>.lock` with the
/// host and process that hold it. The name counts too, because locks between hosts may not work.
/// Held until destroyed; a process that dies frees it for its own host.
class HostLock {
 public:
  /// Throws DatabaseHeld naming who holds it, Error where the file cannot be written.
  explicit HostLock(const std::filesystem::path& database);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace petlab::results::internal
