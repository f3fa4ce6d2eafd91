#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/file_descriptor.h"
#include "protocol/events.h"

namespace petlab::trainer {

/// Seconds since 1970, UTC.
using Clock = std::function<double()>;
Clock system_clock();

/// Writes an attempt's `events.jsonl` (docs/reference/worker-protocol.md). It numbers, timestamps
/// and appends each event, and syncs after checkpoint, finished and failed events.
class EventLog {
 public:
  /// Throws Error if the file cannot be created or already holds events.
  EventLog(std::filesystem::path file, Clock clock);

  /// Appends the event as one line. On failure it throws Error with the file and the system's
  /// reason and truncates the file to its last whole line, so that later events start on a new
  /// line. If the truncation or a sync fails, all later calls throw too.
  void write(decltype(protocol::Event::body) body);

 private:
  std::filesystem::path file_;
  Clock clock_;
  base::FileDescriptor out_;
  std::int64_t next_ = 0;
  std::int64_t size_ = 0;  // total length of the whole lines, in bytes
  std::string broken_;     // why no more events can be written; empty if they can
};

}  // namespace petlab::trainer
