#pragma once

#include <filesystem>
#include <string>

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
class HostLock {
 public:
  /// Throws DatabaseHeld naming the holder, and Error if the file cannot be written.
  explicit HostLock(const std::filesystem::path& database);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

 private:
  base::FileDescriptor file_;
};

}  // namespace petlab::results::internal
