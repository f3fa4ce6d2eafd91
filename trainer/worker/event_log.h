#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "protocol/events.h"

namespace petlab::trainer {

/// Seconds since 1970, UTC.
using Clock = std::function<double()>;
Clock system_clock();

/// The worker's end of an attempt's `events.jsonl` (docs/reference/worker-protocol.md): numbers,
/// times, appends and, for checkpoint, finished and failed, syncs.
class EventLog {
 public:
  /// Throws Error where the file cannot be made, or holds events already.
  EventLog(std::filesystem::path file, Clock clock);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Appends the event as one line. Throws Error naming the file and the system's reason. Then the
  /// file ends with the line before, so that a later event stands on a line of its own; where that
  /// cannot be had, and after a sync that failed, every later call throws too.
  void write(decltype(protocol::Event::body) body);

 private:
  std::filesystem::path file_;
  Clock clock_;
  int descriptor_ = -1;
  std::int64_t next_ = 0;
  std::int64_t size_ = 0;  // of the whole lines
  std::string broken_;     // why nothing more can be written; empty: it can
};

}  // namespace petlab::trainer
