#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// Writes what a worker prints to the log.txt of the attempt that it is at, each file made when its
/// first byte comes and kept to a size, and remembers the last lines. A log that cannot be written
/// (a full disk) never stops a run: the last lines are still remembered.
class WorkerLog {
 public:
  explicit WorkerLog(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  void switch_to(const std::filesystem::path& file);
  void append(std::string_view bytes);
  /// At most 20 lines, 4 KiB; bytes that are no UTF-8 replaced.
  std::string last_lines() const;

 private:
  std::int64_t max_bytes_;
  std::filesystem::path file_;
  base::FileDescriptor fd_;
  std::int64_t written_ = 0;
  bool full_ = false;
  std::string tail_;
};

}  // namespace petlab::orchestrator
