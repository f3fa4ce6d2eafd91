#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace petlab::base {

/// How to start a process.
struct ProcessStart {
  std::string program;                   // absolute
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  int input = -1;                        // becomes its standard input
  int output = -1;                       // becomes its standard output
  int errors = -1;                       // becomes its standard error
  std::vector<int> kept;                 // stay open with these numbers; all others are closed
  std::vector<int> cores;                // cores to run on; empty: those of this process
  bool dies_with_parent = false;         // SIGKILL when the starting thread ends
  bool hears_sigterm = false;            // even if this process ignores SIGTERM
  /// Called in the child before exec, while it shares this process's memory: only async-signal-safe
  /// calls. May be nullptr.
  void (*announce)(int) = nullptr;
  int announced_to = -1;  // announce's argument
};

/// The result of starting a process.
struct StartedProcess {
  pid_t pid = -1;  // -1 if no process was created
  int error = 0;   // 0: it runs, and the caller must reap it; else an errno, and it is reaped
};

/// Starts a process in a new process group, with no blocked signals and this process's original
/// limit of open files. Ignored signals stay ignored, except for SIGPIPE. The cost does not depend
/// on this process's memory (vfork).
StartedProcess start_process(const ProcessStart& start);

/// Waits up to `limit` for a child to end, reaps it, and returns its status as from waitpid, or 0
/// if it was reaped elsewhere. Returns std::nullopt if a killed child does not end, or a debugger
/// holds it; a later start_process() reaps it.
std::optional<int> reap_within(pid_t child, std::chrono::milliseconds limit);

}  // namespace petlab::base
