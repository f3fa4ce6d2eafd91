#include "orchestrator/recovery/living_owners.h"

#include <utility>

namespace petlab::orchestrator {

LivingOwners::LivingOwners(const std::filesystem::path& runs, HostIdentity here)
    : locks_(locks_folder(runs)), here_(std::move(here)) {}

Liveness LivingOwners::operator()(const results::AttemptFacts& attempt) {
  const auto [known, is_new] = known_.try_emplace(attempt.begun.owner, Liveness::unknown);
  if (is_new) known->second = liveness(attempt.begun, locks_, here_);
  return known->second;
}

}  // namespace petlab::orchestrator
