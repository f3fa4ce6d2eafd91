#include "base/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

namespace petlab::base {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 16;

// A handler rather than SIG_IGN, which child processes would inherit.
void do_nothing(int) {}

void open_closed_descriptors() {
  // The flags make every use fail, as with a closed descriptor. open() returns the lowest free
  // number.
  constexpr std::array kFlags = {O_WRONLY, O_RDONLY, O_RDONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      ::open("/dev/null", kFlags[static_cast<std::size_t>(fd)] | O_CLOEXEC);
    }
  }
}

}  // namespace

StandardOutput::StandardOutput() {
  open_closed_descriptors();
  struct sigaction action {};
  action.sa_handler = do_nothing;
  ::sigaction(SIGXFSZ, &action, nullptr);
  terminal_ = ::isatty(STDOUT_FILENO) == 1;
  former_ = std::cout.rdbuf(this);
}

StandardOutput::~StandardOutput() {
  write_out();
  std::cout.rdbuf(former_);
}

int StandardOutput::end(std::string_view program, int code) {
  std::cout.flush();
  if (error_ == 0) return code;
  std::cerr << program << ": standard output cannot be written: " << std::strerror(error_)
            << "; the output is incomplete" << std::endl;
  return code == 0 ? 1 : code;
}

void StandardOutput::lost(int error) {
  int none = 0;
  error_.compare_exchange_strong(none, error);
}

StandardOutput::int_type StandardOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) {
    return traits_type::not_eof(character);
  }
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize size) {
  kept_.append(text, static_cast<std::size_t>(size));
  const bool line = terminal_ && kept_.find('\n') != std::string::npos;
  return (line || kept_.size() >= kMostKept) && !write_out() ? 0 : size;
}

int StandardOutput::sync() { return write_out() ? 0 : -1; }

bool StandardOutput::write_out() {
  std::size_t at = 0;
  while (error_ == 0 && at < kept_.size()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, kept_.data() + at, kept_.size() - at);
    if (wrote >= 0) {
      at += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN) {
      // Another program has made the shared terminal or pipe non-blocking.
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      lost(errno);
    }
  }
  kept_.clear();
  return error_ == 0;
}

}  // namespace petlab::base
