#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/recovery/evidence.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

/// Caches the liveness of open attempts for each orchestrator, because all of its attempts depend
/// on the same locks. The cache is never refreshed: create a new object for each check.
class LivingOwners {
 public:
  LivingOwners(const std::filesystem::path& runs, HostIdentity here);
  Liveness operator()(const results::AttemptFacts& attempt);

 private:
  std::filesystem::path locks_;
  HostIdentity here_;
  std::map<std::string, Liveness> known_;  // by owner
};

}  // namespace petlab::orchestrator
