#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace petlab::testing {

/// What of a file can be read: those of a process fail while it ends.
std::string read_text(const std::filesystem::path& file);

/// A process as /proc tells of it.
struct Process {
  pid_t pid = 0;
  std::string name;
  char state = '?';  // T: stopped, Z: a zombie, X: gone
};
std::vector<Process> children_of(pid_t parent);

/// Stops a process (SIGSTOP) and waits until it stands still or is gone.
void stop_and_wait(pid_t pid);

}  // namespace petlab::testing
