#include "cli/screen.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace petlab::cli {
namespace {

constexpr const char* kEraseLine = "\033[K";
constexpr const char* kEraseBelow = "\033[J";
constexpr const char* kEraseAll = "\033[H\033[2J";

}  // namespace

bool Screen::can_draw(int fd, const std::string& term) {
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

Screen::Size Screen::size() const {
  winsize size{};
  Size found;
  if (::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    // The last column stays free: a line that reaches it may wrap.
    found = {size.ws_col - 1, size.ws_row};
  }
  return found;
}

void Screen::show(const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  // Terminals differ in what becomes of lines when their width changes: only a clean one is sure.
  const bool other_size = !shown_.empty() && size() != shown_at_;
  if (!other_size && lines == shown_) return;
  // A terminal that is stopped (Ctrl-S) or slow must not stop the run.
  pollfd writable{fd_, POLLOUT, 0};
  if (::poll(&writable, 1, 0) == 0) return;
  std::string bytes = other_size ? std::string(kEraseAll) : to_first_line();
  for (std::size_t line = 0; line < lines.size(); ++line) {
    bytes += lines[line];
    bytes += line + 1 < lines.size() ? std::string(kEraseLine) + "\r\n" : std::string(kEraseBelow);
  }
  shown_at_ = size();
  shown_ = lines;
  write(bytes);
}

void Screen::print(const std::vector<std::string>& lines) {
  std::string bytes = to_first_line() + (shown_.empty() ? "" : kEraseBelow);
  for (const std::string& line : lines) bytes += line + "\r\n";
  shown_.clear();
  write(bytes);
}

void Screen::leave() {
  if (shown_.empty()) return;
  shown_.clear();
  write("\r\n");
}

std::string Screen::to_first_line() const {
  if (shown_.empty()) return {};
  return shown_.size() > 1 ? fmt::format("\r\033[{}A", shown_.size() - 1) : std::string("\r");
}

void Screen::write(const std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t wrote = ::write(fd_, bytes.data() + at, bytes.size() - at);
    if (wrote > 0) {
      at += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN) {
      // A terminal that somebody made non-blocking, and that is slow.
      pollfd writable{fd_, POLLOUT, 0};
      ::poll(&writable, 1, 1000);
    } else if (errno != EINTR) {
      return;  // the terminal is gone: the run goes on
    }
  }
}

}  // namespace petlab::cli
