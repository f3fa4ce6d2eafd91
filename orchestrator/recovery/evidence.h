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

/// The unique name of an orchestrator, as recorded in attempts.owner. It is never reused.
struct OwnerName {
  std::int64_t pid = 0;
  std::int64_t start = 0;  // clock ticks after boot
  std::string suffix;      // random
  bool operator==(const OwnerName&) const = default;
};
std::string to_string(const OwnerName& name);  // "123-4567-89ab"
std::optional<OwnerName> owner_name_from(const std::string& text);

/// The folder with the locks of orchestrators and workers.
std::filesystem::path locks_folder(const std::filesystem::path& runs);
std::filesystem::path owner_lock(const std::filesystem::path& locks, const std::string& owner);

/// The host recorded in an orchestrator's lock file; std::nullopt if there is none.
std::optional<HostIdentity> lock_host(const std::filesystem::path& lock);

/// True if the attempt's worker is a job of a queue (Slurm), for which locks and pids prove
/// nothing.
bool in_queue(const protocol::AttemptBegun& begun);

/// "on host-3", "as Slurm job 12_3 on n1".
std::string where_it_runs(const results::AttemptFacts& attempt);

/// Whether the process of an open attempt is alive.
enum class Liveness {
  alive,    ///< its orchestrator, or a worker of that orchestrator, is alive
  dead,     ///< its locks are free; without lock files: no process has its pid and start time
  unknown,  ///< it ran on another host or in a queue: only Slurm or the user knows
};

/// Determines the liveness without changing anything. A free lock is evidence on the host that took
/// it, also after a reboot. Pid and start time are evidence only within one boot and pid namespace.
Liveness liveness(const protocol::AttemptBegun& begun, const std::filesystem::path& locks,
                  const HostIdentity& here);

/// A dead orchestrator whose lock this object holds, so that no other process cleans up after it.
/// Once look() reports that its workers are gone, the caller records the ends of its attempts, then
/// calls remove_files(). No function blocks.
class DeadOwner {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Takes the lock of a dead owner and sends SIGTERM to its remaining workers, unless their
  /// guardian has already asked them to end (asked_file). Returns std::nullopt if the owner is
  /// alive, or if another process is cleaning up after it.
  static std::optional<DeadOwner> take(const protocol::AttemptBegun& begun,
                                       const std::filesystem::path& locks, const HostIdentity& here,
                                       std::chrono::milliseconds grace, Time now);
  enum class Workers {
    ending,  ///< some are left; they get SIGKILL after the grace period
    gone,
    lasting,  ///< a process was killed but does not end
    unseen,   ///< a lock is held, but no process of this pid namespace is the worker's
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
  std::vector<base::ProcessHandle> left_;  // processes that have not ended
};

}  // namespace petlab::orchestrator
