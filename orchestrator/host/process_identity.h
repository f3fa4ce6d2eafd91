#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process_handle.h"

namespace petlab::orchestrator {

/// The scope in which pids are comparable: one boot of one machine and one pid namespace.
struct HostIdentity {
  std::string host;           // gethostname
  std::string boot_id;        // /proc/sys/kernel/random/boot_id
  std::string pid_namespace;  // readlink /proc/self/ns/pid
  bool operator==(const HostIdentity&) const = default;
};
HostIdentity this_host();

/// Start time of a process in clock ticks after boot (field 22 of /proc/PID/stat); std::nullopt if
/// the process does not exist or is a zombie.
std::optional<std::int64_t> process_start(pid_t pid);

/// Returns the other processes whose environment contains `NAME=value`, if this one may read it.
/// They are all processes that a worker started, in any group or session, except zombies and those
/// that cleared their environment.
std::vector<pid_t> processes_with_environment(const std::string& name, const std::string& value);

/// Returns a handle of process `pid` if its environment contains `NAME=value`, or if it started at
/// `start`; otherwise an empty handle. A pid that was read earlier may belong to another process by
/// now; a handle always refers to the same one.
base::ProcessHandle hold_process(pid_t pid, const std::string& name, const std::string& value);
base::ProcessHandle hold_process(pid_t pid, std::int64_t start);

}  // namespace petlab::orchestrator
