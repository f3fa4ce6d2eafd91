#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace petlab::orchestrator {

/// The clock of a run, and the only place where a run waits. A test may override it and advance
/// time by hand.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// `io` must outlive it: workers, signals and watched files report to it.
  explicit EventLoop(boost::asio::io_context& io);
  virtual ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  boost::asio::io_context& io() { return io_; }
  virtual Time now() const { return Clock::now(); }
  /// Seconds since 1970, UTC.
  virtual double wall_seconds() const;
  /// Handles pending events, or waits for one until `wake` at the latest. May return earlier.
  virtual void wait(std::optional<Time> wake);
  /// Handles pending events without waiting.
  virtual void poll();

 private:
  struct Timer;

  boost::asio::io_context& io_;
  std::unique_ptr<Timer> timer_;
  std::optional<Time> armed_;  // when the timer expires
};

}  // namespace petlab::orchestrator
