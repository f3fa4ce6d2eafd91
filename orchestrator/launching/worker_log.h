#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// Writes a worker's output to the log.txt of its current attempt, and remembers the last lines.
/// Each file is created with its first byte and limited in size. A log that cannot be written (a
/// full disk) never stops a run: the last lines are still remembered.
///
/// A worker with several attempts starts each of them without asking. If it announces them
/// (docs/reference/worker-protocol.md), its output is split exactly there, otherwise when log_to()
/// is called.
class WorkerLog {
 public:
  explicit WorkerLog(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Records that the worker was given this attempt, after the earlier ones.
  void expect(const std::filesystem::path& attempt_folder);
  /// Sets the worker's current attempt, as far as known, by its log.txt. Forgets the last lines of
  /// earlier attempts.
  void log_to(const std::filesystem::path& log);
  void append(std::string_view bytes);
  /// Ends the output. A partial announcement is written as ordinary output.
  void end();

  /// The last lines of output: at most 20 lines and 4 KiB, with invalid UTF-8 replaced.
  std::string last_lines() const;
  /// The last lines printed during the attempt of this log.txt; empty if unknown.
  std::string last_lines(const std::filesystem::path& log) const;
  /// The last lines of each attempt that log_to() has not passed yet, by its log.txt.
  std::map<std::filesystem::path, std::string> lines_by_log() const;

 private:
  struct Part {
    std::filesystem::path log;
    std::string tail;
  };
  struct Announcement {
    std::string text;
    std::filesystem::path log;
  };

  void write(std::string_view bytes);
  void switch_to(const std::filesystem::path& log);

  std::int64_t max_bytes_;
  std::deque<Part> parts_ = std::deque<Part>(1);  // the last one is written to
  std::deque<Announcement> expected_;
  bool announces_ = false;
  std::string held_;  // may be the beginning of the next announcement
  base::FileDescriptor fd_;
  std::int64_t written_ = 0;
  bool full_ = false;
};

}  // namespace petlab::orchestrator
