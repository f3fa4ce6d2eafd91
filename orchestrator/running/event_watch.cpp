#include "orchestrator/running/event_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

namespace asio = boost::asio;

struct EventWatch::Impl : std::enable_shared_from_this<EventWatch::Impl> {
  Impl(asio::io_context& loop, std::function<void(int)> on_change)
      : stream(loop), changed(std::move(on_change)) {
    const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd >= 0) stream.assign(fd);
  }

  void wait() {
    if (!stream.is_open()) return;
    stream.async_wait(asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const boost::system::error_code& error) {
                        const auto self = weak.lock();
                        if (error || !self) return;
                        self->read();
                        self->wait();
                      });
  }

  void read() {
    alignas(inotify_event) std::array<char, 16384> buffer;
    for (;;) {
      const ssize_t got = ::read(stream.native_handle(), buffer.data(), buffer.size());
      if (got <= 0) return;
      for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const char* name = buffer.data() + at + sizeof event;
        at += sizeof event + event.len;
        if (event.len > 0 && std::string_view(name) == events_name) changed(event.wd);
      }
    }
  }

  asio::posix::stream_descriptor stream;
  std::function<void(int)> changed;
  const std::string events_name =
      protocol::TrialDirectory("", "trial", 1).events().filename().string();
};

EventWatch::EventWatch(asio::io_context& loop, std::function<void(int)> changed)
    : impl_(std::make_shared<Impl>(loop, std::move(changed))) {
  impl_->wait();
}

EventWatch::~EventWatch() {
  boost::system::error_code ignored;
  impl_->stream.close(ignored);
}

int EventWatch::add(const std::filesystem::path& attempt_folder) {
  if (!impl_->stream.is_open()) return -1;
  return ::inotify_add_watch(impl_->stream.native_handle(), attempt_folder.c_str(),
                             IN_MODIFY | IN_CREATE | IN_MOVED_TO);
}

void EventWatch::remove(int watch) {
  if (watch >= 0 && impl_->stream.is_open()) {
    ::inotify_rm_watch(impl_->stream.native_handle(), watch);
  }
}

}  // namespace petlab::orchestrator
