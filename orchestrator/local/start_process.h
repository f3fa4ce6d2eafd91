#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "orchestrator/local/guardian.h"

namespace petlab::orchestrator {

/// What a worker's process is started with.
struct ProcessStart {
  std::string program;                   // absolute
  std::vector<std::string> arguments;    // behind the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  int input = -1;                        // becomes its standard input
  int output = -1;                       // becomes its standard output and error
  std::vector<int> kept;                 // stay open under their numbers; all else is closed
};

/// Starts a process in a group of its own, which the guardian watches before it runs any code of
/// its own. Signals that are ignored here stay so, but for SIGPIPE and SIGTERM, with which petlab
/// asks a worker to stop. It costs the same however much memory this process has (vfork). Returns
/// its pid, to be reaped by the caller. Throws std::system_error where no process can be made or
/// the program not executed; nothing is left then.
pid_t start_process(const ProcessStart& start, const Guardian& guardian);

}  // namespace petlab::orchestrator
