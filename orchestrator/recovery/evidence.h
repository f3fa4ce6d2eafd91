#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process_handle.h"
#include "orchestrator/host/lock_file.h"
#include "orchestrator/host/process_identity.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

/// The name of one orchestrator, unique for ever: what attempts.owner says.
struct OwnerName {
  std::int64_t pid = 0;
  std::int64_t start = 0;  // clock ticks after boot
  std::string suffix;      // random
  bool operator==(const OwnerName&) const = default;
};
std::string to_string(const OwnerName& name);  // "123-4567-89ab"
std::optional<OwnerName> owner_name_from(const std::string& text);

/// The folder in which orchestrators and workers have their locks.
std::filesystem::path locks_folder(const std::filesystem::path& runs);
std::filesystem::path owner_lock(const std::filesystem::path& locks, const std::string& owner);

/// The host that an orchestrator's lock file names; std::nullopt where it names none.
std::optional<HostIdentity> lock_host(const std::filesystem::path& lock);

/// True: its worker is a job of a queue (Slurm), which no lock and no pid tell of.
bool in_queue(const protocol::AttemptBegun& begun);

/// "on host-3", "as Slurm job 12_3 on n1".
std::string where_it_runs(const results::AttemptFacts& attempt);

/// What is known of the process that an open attempt belongs to.
enum class Liveness {
  alive,    ///< its orchestrator lives, or a worker of that still does
  dead,     ///< all locks are free, or pid and start time say so
  unknown,  ///< it ran on another host, or in a queue: only Slurm or the user can tell
};

/// Looks, and touches nothing. A free lock is evidence on the machine and boot that took it, and
/// where only the boot differs; pid and start time are evidence within one boot and pid namespace.
Liveness liveness(const protocol::AttemptBegun& begun, const std::filesystem::path& locks,
                  const HostIdentity& here);

/// A dead orchestrator, held by its lock so that nobody else clears up after it. When look() says
/// that its workers are gone, the caller records the ends of its attempts, then calls
/// remove_files(). Nothing here waits.
class DeadOwner {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Asks what is left of the owner's workers to end: SIGTERM, unless their guardian has asked them
  /// already (asked_file). std::nullopt where the owner is alive, or is being cleared up by
  /// another.
  static std::optional<DeadOwner> take(const protocol::AttemptBegun& begun,
                                       const std::filesystem::path& locks, const HostIdentity& here,
                                       std::chrono::milliseconds grace, Time now);
  enum class Workers {
    ending,  ///< some are left; after the grace they get SIGKILL
    gone,
    lasting,  ///< killed, and a process does not end
    unseen,   ///< a lock is held, and no process of this pid namespace is the worker's
  };
  Workers look(Time now);
  void remove_files();

 private:
  DeadOwner(LockFile lock, std::filesystem::path locks, std::string owner, Time kill_at)
      : lock_(std::move(lock)),
        locks_(std::move(locks)),
        owner_(std::move(owner)),
        kill_at_(kill_at) {}
  void find_workers(bool ask);
  LockFile lock_;
  std::filesystem::path locks_;
  std::string owner_;
  Time kill_at_;
  std::vector<base::ProcessHandle> left_;  // processes
};

}  // namespace petlab::orchestrator
