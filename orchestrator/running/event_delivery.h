#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "base/child.h"

namespace petlab::orchestrator {

/// The command that gets a user's events.
struct EventCommand {
  std::string text;  // for /bin/sh
  /// It is killed after this time, and a finished run waits this long for it.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  std::chrono::milliseconds retry_delay = std::chrono::seconds(1);  // doubled with each try
};

/// Runs a command for each event, one at a time and in order. One that fails is tried three times;
/// then its event is left. Use it on the loop's thread.
class EventDelivery {
 public:
  struct Event {
    std::string id;
    std::string about;  // "trial_failed of 3f2a9c01"
    std::string json;   // for the command's standard input
  };
  /// `delivered` gets the id of each delivered event. `note` gets a line for the user about the
  /// first of several events in a row that are left.
  EventDelivery(boost::asio::io_context& io, EventCommand command,
                std::function<void(const std::string& id)> delivered,
                std::function<void(const std::string& line)> note);

  void add(Event event);
  /// True while the command runs, or waits to be tried again.
  bool is_busy() const { return busy_; }
  /// The number of events that were not delivered, those in the queue included.
  std::int64_t left() const { return left_ + static_cast<std::int64_t>(queue_.size()); }

 private:
  void deliver_next();
  void answered(const base::ChildAnswer& answer);
  void leave(const std::string& why);

  const EventCommand command_;
  const std::function<void(const std::string&)> delivered_;
  const std::function<void(const std::string&)> note_;
  std::deque<Event> queue_;  // the first is being delivered
  bool busy_ = false;        // delivering the first, or waiting to try it again
  bool failing_ = false;     // the last event could not be delivered
  int tries_ = 0;            // for the first event
  std::int64_t left_ = 0;    // not delivered
  boost::asio::steady_timer retry_;
  base::Children children_;
};

}  // namespace petlab::orchestrator
