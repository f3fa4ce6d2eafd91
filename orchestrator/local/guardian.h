#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// A small process that ends a slot's worker, with its whole process group, when the orchestrator
/// dies: it holds the reading end of a pipe whose writing end only the orchestrator has. It sends
/// SIGTERM, unless somebody has, then SIGKILL after a grace, or when the group's leader has ended.
/// A group is released before its leader is reaped, so that no other has its number while it is
/// watched. It is a fork without exec, so it must be started before the process has threads. The
/// destructor closes the pipe and reaps it; at that time no group may be watched that is to live
/// on.
class Guardian {
 public:
  /// `asked`: asked_file() of the slot. Throws Error where no pipe or process can be made.
  Guardian(std::chrono::milliseconds grace, const std::filesystem::path& asked);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  pid_t pid() const { return pid_; }
  /// The pipe; for watch_self() in a child between fork and exec.
  int pipe_fd() const { return pipe_.get(); }

  /// Async-signal-safe: tells the guardian to watch the group of the calling process, before that
  /// runs any code of its own. So there is no moment in which a worker runs unwatched.
  static void watch_self(int pipe_fd);
  /// From the orchestrator, where a new guardian takes over from a dead one.
  void watch(pid_t group);
  /// The group is over: it is not ended any more.
  void release(pid_t group) const;
  /// True when the guardian has died; it is reaped then.
  bool reap_if_dead();

 private:
  void send(pid_t message) const;
  pid_t pid_ = -1;
  base::FileDescriptor pipe_;
};

}  // namespace petlab::orchestrator
