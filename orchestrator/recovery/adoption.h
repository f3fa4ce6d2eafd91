#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/host/process_identity.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// A dead orchestrator whose jobs a queue still has, held by its lock: for all others it is alive
/// as long as this lives. Whoever has it watches those attempts and records their ends.
struct Orphans {
  std::string owner;
  LockFile lock;
  std::vector<results::AttemptFacts> attempts;  // open ones
};

/// Takes the dead orchestrators with open attempts in a queue that `wanted` is true for. One of
/// this host is dead when its lock is free; one of another host where `store` says that no other
/// host has the database. `self` is the caller's own name. Throws results::Error and Error.
std::vector<Orphans> take_orphans(results::Store& store, const std::filesystem::path& runs,
                                  const HostIdentity& here, const std::string& self,
                                  const std::function<bool(const results::AttemptFacts&)>& wanted);

/// True for the name of an orchestrator that is dead and has no attempt open in `store`, as it was
/// when this was called. The references must outlive it.
std::function<bool(const std::string& owner)> ended_owners(const results::Store& store,
                                                           const std::filesystem::path& runs,
                                                           const HostIdentity& here);

}  // namespace petlab::orchestrator
