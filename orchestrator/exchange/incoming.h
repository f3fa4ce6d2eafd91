#pragma once

#include <filesystem>

#include "orchestrator/host/lock_file.h"

namespace petlab::orchestrator {

/// The lock of who brings attempts into a runs folder or takes files away: merge, import, gc. Makes
/// `runs` where it is not there. Throws Error where another process has it.
LockFile lock_incoming(const std::filesystem::path& runs);
std::filesystem::path incoming_lock(const std::filesystem::path& runs);
std::filesystem::path incoming_folder(const std::filesystem::path& runs);

/// The folder of a runs folder in which what comes from elsewhere waits to be complete
/// (`.incoming`); one at a time has it. What a killed process left in it is removed when it is
/// made, and all of it at its end.
class Incoming {
 public:
  /// Makes `runs` where it is not there. Throws Error where another process has the folder.
  explicit Incoming(const std::filesystem::path& runs);
  ~Incoming();
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  const std::filesystem::path& runs() const { return runs_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path runs_;
  std::filesystem::path folder_;
  LockFile lock_;
};

}  // namespace petlab::orchestrator
