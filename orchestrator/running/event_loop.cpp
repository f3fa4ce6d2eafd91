#include "orchestrator/running/event_loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orchestrator/host/wall_clock.h"

namespace petlab::orchestrator {

struct EventLoop::Timer : boost::asio::steady_timer {
  using boost::asio::steady_timer::steady_timer;
};

EventLoop::EventLoop(boost::asio::io_context& io) : io_(io), timer_(std::make_unique<Timer>(io)) {}
EventLoop::~EventLoop() = default;

double EventLoop::wall_seconds() const { return wall_clock_seconds(); }

void EventLoop::wait(std::optional<Time> wake) {
  // Resetting the timer cancels the wait before it, whose handler would make run_one() return
  // early.
  if (wake && (!armed_ || *wake < *armed_)) {
    armed_ = *wake;
    timer_->expires_at(*wake);
    timer_->async_wait([this](const boost::system::error_code& error) {
      if (!error) armed_.reset();
    });
  }
  io_.run_one();
  io_.poll();
  if (io_.stopped()) io_.restart();
}

void EventLoop::poll() { io_.poll(); }

}  // namespace petlab::orchestrator
