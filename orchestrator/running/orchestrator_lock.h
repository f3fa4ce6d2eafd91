#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "orchestrator/host/lock_file.h"

namespace petlab::orchestrator {

/// This orchestrator's lock. Its file describes the run to users, and is removed at the end.
class OrchestratorLock {
 public:
  /// Throws Error if the lock cannot be taken.
  OrchestratorLock(const std::filesystem::path& locks, const std::string& owner,
                   const std::filesystem::path& database, const std::string& sweep);
  ~OrchestratorLock();
  OrchestratorLock(const OrchestratorLock&) = delete;
  OrchestratorLock& operator=(const OrchestratorLock&) = delete;

 private:
  std::optional<LockFile> lock_;
};

}  // namespace petlab::orchestrator
