#include "base/process_end.h"

#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "base/process_handle.h"

namespace petlab::base {
namespace {

namespace asio = boost::asio;

// Polling interval if the kernel has no pidfd, or this process has no free descriptor for one.
constexpr auto kLookAgain = std::chrono::milliseconds(10);

bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

}  // namespace

struct ProcessEnd::Watch : std::enable_shared_from_this<ProcessEnd::Watch> {
  Watch(asio::io_context& loop, pid_t child_pid, std::function<void()> on_end)
      : child(child_pid), handle(child_pid), ended(std::move(on_end)), end(loop), timer(loop) {}
  ~Watch() {
    if (end.is_open()) end.release();  // the handle closes it
  }

  void wait() {
    const auto on_event = [weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (error || !self) return;
      // Check the handle, because the loop may deliver an event of a former descriptor. A child
      // held by a debugger has ended, too, although it cannot be reaped.
      const bool over =
          self->handle.pollable() >= 0 ? self->handle.is_gone(0) : has_ended(self->child);
      if (over) {
        std::exchange(self->ended, nullptr)();
      } else {
        self->wait();
      }
    };
    if (handle.pollable() >= 0) {
      if (!end.is_open()) end.assign(handle.pollable());
      end.async_wait(asio::posix::stream_descriptor::wait_read, on_event);
    } else {
      timer.expires_after(kLookAgain);
      timer.async_wait(on_event);
    }
  }

  const pid_t child;
  const ProcessHandle handle;
  std::function<void()> ended;
  asio::posix::stream_descriptor end;
  asio::steady_timer timer;
};

ProcessEnd::ProcessEnd(asio::io_context& loop) : loop_(&loop) {}
ProcessEnd::~ProcessEnd() = default;
ProcessEnd::ProcessEnd(ProcessEnd&&) noexcept = default;
ProcessEnd& ProcessEnd::operator=(ProcessEnd&&) noexcept = default;

void ProcessEnd::watch(pid_t child, std::function<void()> ended) {
  watch_ = std::make_shared<Watch>(*loop_, child, std::move(ended));
  watch_->wait();
}

}  // namespace petlab::base
