#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace petlab::trainer {

/// Set by a SIGTERM, SIGINT or SIGHUP that comes after listen_for_signals(). More of them change
/// nothing; SIGQUIT ends the process early.
const std::atomic<bool>& stop_requested();
/// Installs the handlers of signals that are not ignored, and lets output that nobody reads any
/// more fail (SIGPIPE is ignored): the log's reader may be gone when a checkpoint is to be written.
/// Once a process.
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
