#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process_handle.h"

namespace petlab::orchestrator {

/// Within what a pid means something: one boot of one machine, one pid namespace.
struct HostIdentity {
  std::string host;           // gethostname
  std::string boot_id;        // /proc/sys/kernel/random/boot_id
  std::string pid_namespace;  // readlink /proc/self/ns/pid
  bool operator==(const HostIdentity&) const = default;
};
HostIdentity this_host();

/// Start of a process in clock ticks after boot (field 22 of /proc/PID/stat); std::nullopt where
/// there is no such process or only its zombie is left.
std::optional<std::int64_t> process_start(pid_t pid);

/// The processes that this one may look at whose environment says `NAME=value`: all that a worker
/// started, in whatever group or session, but what wiped its environment. Zombies are none.
std::vector<pid_t> processes_with_environment(const std::string& name, const std::string& value);

/// A handle of the process `pid` whose environment says `NAME=value`, or that started at `start`;
/// empty where that is not so. A pid that was read earlier may be another process's by now, a
/// handle never is.
base::ProcessHandle hold_process(pid_t pid, const std::string& name, const std::string& value);
base::ProcessHandle hold_process(pid_t pid, std::int64_t start);

}  // namespace petlab::orchestrator
