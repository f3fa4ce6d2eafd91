#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/recovery/evidence.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

/// The liveness of open attempts, looked up once for each orchestrator: all of its attempts are
/// behind the same locks. It serves one look; the next look needs a new one.
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
