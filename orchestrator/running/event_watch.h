#pragma once

#include <filesystem>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

/// Reports when a worker has written to the events.jsonl of an attempt (inotify). It reports
/// nothing if the kernel cannot watch the file (its limit is reached, or another host writes), so
/// the run also checks for itself once a second.
class EventWatch {
 public:
  /// `changed` is called from the loop with the id of the watch.
  EventWatch(boost::asio::io_context& loop, std::function<void(int)> changed);
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// Watches an attempt's directory. Returns the id of the watch, or -1 if there is none.
  int add(const std::filesystem::path& attempt_folder);
  void remove(int watch);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace petlab::orchestrator
