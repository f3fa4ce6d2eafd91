#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/host/process_identity.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// A dead orchestrator whose jobs are still in a queue. While this object exists, it holds that
/// orchestrator's lock, so that all others consider it alive. Its holder watches the attempts and
/// records their ends.
struct Orphans {
  std::string owner;
  LockFile lock;
  std::vector<results::AttemptFacts> attempts;  // open ones
};

/// Takes over the dead orchestrators with open attempts in a queue for which `wanted` is true. An
/// orchestrator is dead if its lock is free; if it ran on another host, `store` must also show that
/// no other host has the database. `self` is the caller's own name. Throws results::Error and
/// Error.
std::vector<Orphans> take_orphans(results::Store& store, const std::filesystem::path& runs,
                                  const HostIdentity& here, const std::string& self,
                                  const std::function<bool(const results::AttemptFacts&)>& wanted);

/// Returns a predicate that is true for the name of an orchestrator that is dead and had no open
/// attempt in `store` when this was called. `store` and `here` must outlive it.
std::function<bool(const std::string& owner)> ended_owners(const results::Store& store,
                                                           const std::filesystem::path& runs,
                                                           const HostIdentity& here);

}  // namespace petlab::orchestrator
