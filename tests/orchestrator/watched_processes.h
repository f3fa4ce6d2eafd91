#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace petlab::testing {

/// The readable part of a file: files in /proc can fail while their process ends.
std::string read_text(const std::filesystem::path& file);

/// A process as shown in /proc.
struct Process {
  pid_t pid = 0;
  std::string name;
  char state = '?';  // T: stopped, Z: a zombie, X: gone
};
std::vector<Process> children_of(pid_t parent);

/// Stops a process (SIGSTOP) and waits until it is stopped or gone.
void stop_and_wait(pid_t pid);

}  // namespace petlab::testing
