#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// A small process that ends a slot's worker, with its whole process group, when the orchestrator
/// dies. It holds the reading end of a pipe whose writing end only the orchestrator has. It sends
/// SIGTERM, unless another process has, and SIGKILL after a grace period or when the group's leader
/// has ended. A group must be released before its leader is reaped, so that its number is not
/// reused while it is watched. The guardian is a fork without exec, so it must be started before
/// the process has threads. The destructor closes the pipe and reaps the guardian; by then, no
/// group may be watched that should live on.
class Guardian {
 public:
  /// `asked`: asked_file() of the slot. Throws Error if no pipe or process can be created.
  Guardian(std::chrono::milliseconds grace, const std::filesystem::path& asked);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  pid_t pid() const { return pid_; }
  /// The pipe for watch_self(), in a child between fork and exec.
  int pipe_fd() const { return pipe_.get(); }

  /// Tells the guardian to watch the group of the calling process. To be called before that process
  /// runs any other code, so that no worker runs unwatched. Async-signal-safe.
  static void watch_self(int pipe_fd);
  /// Called by the orchestrator when a new guardian replaces a dead one.
  void watch(pid_t group);
  /// Stops watching a group, because it is over.
  void release(pid_t group) const;
  /// Returns true and reaps the guardian if it has died.
  bool reap_if_dead();

 private:
  void send(pid_t message) const;
  pid_t pid_ = -1;
  base::FileDescriptor pipe_;
};

}  // namespace petlab::orchestrator
