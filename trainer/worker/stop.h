#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace petlab::trainer {

/// Set by the first SIGTERM or SIGINT after listen_for_signals(); a second one ends the process.
const std::atomic<bool>& stop_requested();
/// Installs the handlers, and lets output that nobody reads any more fail (SIGPIPE is ignored): the
/// log's reader may be gone when a checkpoint is to be written. Once a process.
void listen_for_signals();

/// Lines from standard input, without their newline, until it closes or a stop is requested
/// (std::nullopt).
class InputLines {
 public:
  std::optional<std::string> next();

 private:
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace petlab::trainer
