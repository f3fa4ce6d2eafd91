#pragma once

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace petlab::base {

/// Refers to one process even after its pid is reused: by a pidfd, or by its folder in /proc if the
/// kernel has none (Linux before 5.3, some sandboxes). All calls except moves are
/// async-signal-safe.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  /// Empty if the process does not exist. Zombies exist.
  explicit ProcessHandle(pid_t pid);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// True once the process has ended, reaped or not. Waits up to `timeout_ms`.
  bool is_gone(int timeout_ms = 0) const;
  /// False if the process has ended or may not be signalled. Without pidfds, a pid that is reaped
  /// and reused during this call is not detected.
  bool send(int signal) const;
  /// A pidfd that becomes readable at the process's end, or -1 if is_gone() must be polled.
  int pollable() const { return is_pidfd_ ? fd_.get() : -1; }

 private:
  FileDescriptor fd_;
  pid_t pid_ = 0;
  bool is_pidfd_ = false;
};

}  // namespace petlab::base
