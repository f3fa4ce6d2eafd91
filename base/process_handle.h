#pragma once

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace petlab::base {

/// A process by something that never means another one, as a pid may once the process is gone and
/// reaped: a pidfd, or its folder in /proc where the kernel has none (Linux before 5.3, some
/// sandboxes). All calls but the move are async-signal-safe.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  /// Empty if there is no such process; a zombie is one.
  explicit ProcessHandle(pid_t pid);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// True once the process has ended, reaped or not. Waits for that for up to `timeout_ms`.
  bool is_gone(int timeout_ms = 0) const;
  /// False if the process is gone or may not be signalled. Without pidfds, a process that is reaped
  /// and whose pid is given away within this call is missed.
  bool send(int signal) const;
  /// A pidfd to poll, readable at the process's end; -1: is_gone() must be asked again and again.
  int pollable() const { return is_pidfd_ ? fd_.get() : -1; }

 private:
  FileDescriptor fd_;
  pid_t pid_ = 0;
  bool is_pidfd_ = false;
};

}  // namespace petlab::base
