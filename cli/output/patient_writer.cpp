#include "cli/output/patient_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace petlab::cli {
namespace {

using Clock = std::chrono::steady_clock;

// True where something can be written within that time, or nothing ever more.
bool writable(int fd, int milliseconds) {
  pollfd ready{fd, POLLOUT, 0};
  return ::poll(&ready, 1, milliseconds) > 0;
}

}  // namespace

PatientWriter::PatientWriter(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {
  if (!terminal_) return;
  // Refused, for example, where the terminal is another user's (su).
  own_ = base::FileDescriptor(::open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                                     O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

void PatientWriter::keep(std::string_view text) {
  // Whole lines are left out, so that what a program reads stays lines.
  const bool within_line = !kept_.empty() && kept_.back() != '\n';
  if (kept_.size() + text.size() > kMostKept && !within_line) {
    left_out_ += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    return;
  }
  kept_.append(text);
}

bool PatientWriter::flush() {
  kept_.erase(0, write_now(kept_));
  if (kept_.empty() && left_out_ > 0) {
    kept_ = fmt::format("petlab: {} lines were dropped here: nothing read them\n", left_out_);
    left_out_ = 0;
    kept_.erase(0, write_now(kept_));
  }
  return kept_.empty();
}

bool PatientWriter::offer(std::string_view text) {
  if (!flush()) return false;
  const std::size_t written = write_now(text);
  if (written == 0) return false;
  kept_ = text.substr(written);
  return true;
}

void PatientWriter::finish() {
  Clock::time_point since = Clock::now();
  for (std::size_t before = kept_.size(); !flush(); before = kept_.size()) {
    if (!terminal_) {
      writable(fd_, -1);
      continue;
    }
    if (kept_.size() < before) since = Clock::now();
    if (Clock::now() - since >= kStopped) {
      kept_.clear();
      return;
    }
    // A terminal may call itself writable and have no room for the next character.
    constexpr int kPause = 10;  // milliseconds
    if (writable(fd_, kPause)) ::poll(nullptr, 0, kPause);
  }
}

// How much of the text is done with: written, or lost for ever.
std::size_t PatientWriter::write_now(std::string_view text) {
  // So much goes into a pipe that poll calls writable without waiting. A terminal promises room for
  // a character.
  const std::size_t most = own_ ? text.size() : terminal_ ? 1 : PIPE_BUF;
  const int fd = own_ ? own_.get() : fd_;
  std::size_t written = 0;
  while (written < text.size()) {
    if (!own_ && !writable(fd, 0)) break;
    const ssize_t wrote = ::write(fd, text.data() + written, std::min(text.size() - written, most));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno != EAGAIN) {
      if (error_ == 0) error_ = errno;
      return text.size();
    }
    if (wrote <= 0) break;
    written += static_cast<std::size_t>(wrote);
  }
  return written;
}

}  // namespace petlab::cli
