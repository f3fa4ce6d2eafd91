#pragma once

#include <filesystem>

#include "orchestrator/host/lock_file.h"

namespace petlab::exchange {

/// Locks a runs folder against other merges, imports and gcs. Creates `runs` if missing. Throws
/// Error if another process holds the lock.
orchestrator::LockFile lock_incoming(const std::filesystem::path& runs);
std::filesystem::path incoming_lock(const std::filesystem::path& runs);
std::filesystem::path incoming_folder(const std::filesystem::path& runs);

/// The staging folder (`.incoming`) in a runs folder for data from elsewhere, used by one process
/// at a time. The constructor removes a killed process's leftovers; the destructor removes the
/// folder.
class Incoming {
 public:
  /// Creates `runs` if missing. Throws Error if another process uses the folder.
  explicit Incoming(const std::filesystem::path& runs);
  ~Incoming();
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  const std::filesystem::path& runs() const { return runs_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path runs_;
  std::filesystem::path folder_;
  orchestrator::LockFile lock_;
};

}  // namespace petlab::exchange
