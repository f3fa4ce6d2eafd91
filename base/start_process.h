#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace petlab::base {

/// What a process is started with.
struct ProcessStart {
  std::string program;                   // absolute
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  int input = -1;                        // becomes its standard input
  int output = -1;                       // becomes its standard output
  int errors = -1;                       // becomes its standard error
  std::vector<int> kept;                 // stay open under their numbers; all others are closed
  std::vector<int> cores;                // it runs on these alone; empty: as this process
  bool dies_with_parent = false;         // SIGKILL when the thread that started it ends
  bool hears_sigterm = false;            // also if this process ignores it
  /// Called in the child, which shares this process's memory, before it runs any code of its own:
  /// async-signal-safe calls only. nullptr: nothing.
  void (*announce)(int) = nullptr;
  int announced_to = -1;  // announce's argument
};

/// The result of starting a process.
struct StartedProcess {
  pid_t pid = -1;  // -1: none could be made
  int error = 0;   // 0: the program runs, and the caller reaps it; else errno, and it is reaped
};

/// Starts a process in a group of its own, with no blocked signal and the limit of open files that
/// this process was started with. Signals that are ignored here stay so, but for SIGPIPE. It costs
/// the same however much memory this process has (vfork).
StartedProcess start_process(const ProcessStart& start);

/// Waits up to `limit` for a child to end, and reaps it: its status as of waitpid; 0 where somebody
/// else has reaped it. Absent: it is killed and does not end, or a tracer holds it; a later
/// start_process() reaps it.
std::optional<int> reap_within(pid_t child, std::chrono::milliseconds limit);

}  // namespace petlab::base
