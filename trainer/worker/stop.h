#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace petlab::trainer {

/// True after a SIGTERM, SIGINT or SIGHUP, once listen_for_signals() has been called. Further ones
/// change nothing. SIGQUIT ends the process immediately.
const std::atomic<bool>& stop_requested();
/// Installs handlers for the signals that are not ignored. Also ignores SIGPIPE, so that output
/// fails with an error once its reader is gone: the process must still write its checkpoint. Call
/// it once per process.
void listen_for_signals();

/// Reads lines from standard input, without their newlines. Returns std::nullopt once the input
/// closes or a stop is requested.
class InputLines {
 public:
  std::optional<std::string> next();

 private:
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace petlab::trainer
