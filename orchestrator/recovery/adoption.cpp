#include "orchestrator/recovery/adoption.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "orchestrator/recovery/evidence.h"

namespace petlab::orchestrator {
namespace {

std::map<std::string, std::vector<results::AttemptFacts>> queued_attempts(
    const results::Store& store) {
  std::map<std::string, std::vector<results::AttemptFacts>> owners;
  for (results::AttemptFacts& open : store.read().open_attempts()) {
    if (in_queue(open.begun)) owners[open.begun.owner].push_back(std::move(open));
  }
  return owners;
}

bool may_be_dead(const std::filesystem::path& lock, const std::string& owner,
                 const HostIdentity& here, bool alone) {
  const std::optional<HostIdentity> host = lock_host(lock);
  if (host) return host->host == here.host || host->boot_id == here.boot_id || alone;
  // The lock is missing: the orchestrator has ended, or used another runs folder.
  const std::optional<OwnerName> name = owner_name_from(owner);
  return name && process_start(static_cast<pid_t>(name->pid)) != name->start;
}

}  // namespace

std::vector<Orphans> take_orphans(results::Store& store, const std::filesystem::path& runs,
                                  const HostIdentity& here, const std::string& self,
                                  const std::function<bool(const results::AttemptFacts&)>& wanted) {
  std::vector<Orphans> adopted;
  const std::filesystem::path locks = locks_folder(runs);
  for (const auto& [owner, attempts] : queued_attempts(store)) {
    const bool any = std::any_of(attempts.begin(), attempts.end(), wanted);
    const std::filesystem::path file = owner_lock(locks, owner);
    if (!any || owner == self || !may_be_dead(file, owner, here, store.alone())) continue;
    std::optional<LockFile> lock = LockFile::try_lock(file);
    if (!lock) continue;
    const nlohmann::ordered_json about = {{"adopted_by", self},
                                          {"host", here.host},
                                          {"boot_id", here.boot_id},
                                          {"pid_namespace", here.pid_namespace}};
    lock->write(about.dump() + "\n");
    // Reads the attempts again: the owner may have ended some before this process got the lock.
    adopted.push_back({owner, std::move(*lock), std::move(queued_attempts(store)[owner])});
  }
  return adopted;
}

std::function<bool(const std::string& owner)> ended_owners(const results::Store& store,
                                                           const std::filesystem::path& runs,
                                                           const HostIdentity& here) {
  return [&store, &here, locks = locks_folder(runs),
          open = queued_attempts(store)](const std::string& owner) {
    const std::filesystem::path lock = owner_lock(locks, owner);
    return !open.contains(owner) && !LockFile::is_held(lock) &&
           may_be_dead(lock, owner, here, store.alone());
  };
}

}  // namespace petlab::orchestrator
