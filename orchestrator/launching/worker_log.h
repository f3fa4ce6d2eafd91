#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// Writes what a worker prints to the log.txt of the attempt that it is at, each file made when its
/// first byte comes and kept to a size, and remembers the last lines. A log that cannot be written
/// (a full disk) never stops a run: the last lines are still remembered.
///
/// A worker that was given several attempts goes from one to the next without asking. Where it
/// announces each (docs/reference/worker-protocol.md), its output is divided exactly there; where
/// it does not, when log_to() says so.
class WorkerLog {
 public:
  explicit WorkerLog(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// The worker was given this attempt, after those before it.
  void expect(const std::filesystem::path& attempt_folder);
  /// The worker is at the attempt of this log.txt, as far as is known. The last lines of earlier
  /// ones are forgotten.
  void log_to(const std::filesystem::path& log);
  void append(std::string_view bytes);
  /// Nothing more comes: half an announcement is output as any other.
  void end();

  /// Of what was printed last: at most 20 lines, 4 KiB; bytes that are no UTF-8 replaced.
  std::string last_lines() const;
  /// Of what was printed while the worker was at the attempt of this log.txt; empty where that is
  /// not known.
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
