#include "cli/output/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

namespace petlab::cli {
namespace {

constexpr const char* kEraseLine = "\033[K";
constexpr const char* kEraseBelow = "\033[J";
constexpr const char* kEraseAll = "\033[H\033[2J";

}  // namespace

int terminal_width(const std::ostream& out) {
  winsize size{};
  if (&out != &std::cout || ::isatty(STDOUT_FILENO) == 0) return 0;
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool Screen::can_draw(int fd, const std::string& term) {
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

Screen::Size Screen::size() const {
  winsize size{};
  Size found;
  if (::ioctl(out_.fd(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    // The last column stays free: a line that reaches it may wrap.
    found = {size.ws_col - 1, size.ws_row};
  }
  return found;
}

void Screen::show(const std::vector<std::string>& lines) {
  // Also where nothing is new: what could not be written before may go now.
  const bool idle = out_.flush();
  if (!idle || lines.empty()) return;
  // Terminals differ in what becomes of lines when their width changes: only a clean one is sure.
  const Size now = size();
  const bool other_size = !shown_.empty() && now != shown_at_;
  if (!other_size && lines == shown_) return;
  std::string bytes = other_size ? std::string(kEraseAll) : to_first_line();
  for (std::size_t line = 0; line < lines.size(); ++line) {
    bytes += lines[line];
    bytes += line + 1 < lines.size() ? std::string(kEraseLine) + "\r\n" : std::string(kEraseBelow);
  }
  if (!out_.offer(bytes)) return;
  shown_at_ = now;
  shown_ = lines;
}

void Screen::print(const std::vector<std::string>& lines) {
  std::string bytes = to_first_line() + (shown_.empty() ? "" : kEraseBelow);
  for (const std::string& line : lines) bytes += line + "\r\n";
  shown_.clear();
  out_.keep(bytes);
  out_.flush();
}

void Screen::leave() {
  if (shown_.empty()) return;
  shown_.clear();
  out_.keep("\r\n");
  out_.flush();
}

std::string Screen::to_first_line() const {
  if (shown_.empty()) return {};
  return shown_.size() > 1 ? fmt::format("\r\033[{}A", shown_.size() - 1) : std::string("\r");
}

}  // namespace petlab::cli
