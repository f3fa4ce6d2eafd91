#pragma once

#include <filesystem>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

/// Tells when a worker has written to the events.jsonl of an attempt (inotify). Where the kernel
/// gives no watch (its limit is reached, another host writes) nothing is told: the run also looks
/// by itself once a second.
class EventWatch {
 public:
  /// `changed` is called from the loop with the id of the watch.
  EventWatch(boost::asio::io_context& loop, std::function<void(int)> changed);
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// Watches an attempt's directory; its id, -1 where there is none.
  int add(const std::filesystem::path& attempt_folder);
  void remove(int watch);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace petlab::orchestrator
