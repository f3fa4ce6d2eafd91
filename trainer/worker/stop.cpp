#include "trainer/worker/stop.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/signals.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

std::atomic<bool> asked_to_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
// Wakes a reader that waits for its next line. A byte written before the wait wakes it too.
std::array<int, 2> wake{-1, -1};

// Slurm, systemd and a shutdown signal every process of a job, and petlab signals its workers.
// Repeated requests therefore change nothing.
extern "C" void on_signal(int) {
  if (asked_to_stop.exchange(true)) return;
  const int kept = errno;
  const char byte = 0;
  if (::write(wake[1], &byte, 1) < 0) {
    // The write fails only if the pipe is full, and then the reader has been woken already.
  }
  errno = kept;
}

}  // namespace

const std::atomic<bool>& stop_requested() { return asked_to_stop; }

void listen_for_signals() {
  if (::pipe2(wake.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(std::string("cannot create a pipe for signals: ") + std::strerror(errno));
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    base::handle_unless_ignored(signal, on_signal, SA_RESTART);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<std::string> InputLines::next() {
  for (;;) {
    if (asked_to_stop) return std::nullopt;
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (closed_) {
      if (buffer_.empty()) return std::nullopt;
      return std::exchange(buffer_, {});
    }
    std::array<pollfd, 2> waited{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{wake[0], POLLIN, 0}};
    if (::poll(waited.data(), waited.size(), -1) < 0) {
      if (errno == EINTR) continue;
      throw Error(std::string("standard input cannot be waited for: ") + std::strerror(errno));
    }
    if (waited[0].revents == 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(std::string("standard input: ") + std::strerror(errno));
    if (n == 0) closed_ = true;
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace petlab::trainer
