#include "cli/patient_output.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

namespace petlab::cli {

PatientOutput::PatientOutput(std::ostream& stream) : stream_(stream) {
  if (&stream == &std::cout) fd_ = STDOUT_FILENO;
  if (&stream == &std::cerr) fd_ = STDERR_FILENO;
  if (fd_ < 0) return;
  stream.flush();
  former_ = stream.rdbuf(this);
}

PatientOutput::~PatientOutput() {
  if (fd_ < 0) return;
  write_kept(true);
  stream_.rdbuf(former_);
}

int PatientOutput::overflow(int character) {
  if (character == traits_type::eof()) return traits_type::not_eof(character);
  const char one = static_cast<char>(character);
  keep(&one, 1);
  return character;
}

std::streamsize PatientOutput::xsputn(const char* text, std::streamsize size) {
  keep(text, static_cast<std::size_t>(size));
  return size;
}

int PatientOutput::sync() {
  write_kept(false);
  return 0;
}

void PatientOutput::keep(const char* text, std::size_t size) {
  // Whole lines are left out, so that what a program reads stays lines.
  const bool within_line = !kept_.empty() && kept_.back() != '\n';
  if (kept_.size() + size > kMostKept && !within_line) {
    left_out_ += static_cast<std::size_t>(std::count(text, text + size, '\n'));
    return;
  }
  kept_.append(text, size);
}

void PatientOutput::write_kept(bool wait) {
  std::size_t written = 0;
  while (written < kept_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    const int count = ::poll(&ready, 1, wait ? -1 : 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    // So much goes into a pipe that poll calls writable, without waiting.
    const std::size_t size = std::min<std::size_t>(kept_.size() - written, PIPE_BUF);
    const ssize_t wrote = ::write(fd_, kept_.data() + written, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) {
      if (wait) continue;
      break;
    }
    // Nobody will ever read it.
    if (wrote < 0) written = kept_.size();
    if (wrote > 0) written += static_cast<std::size_t>(wrote);
  }
  kept_.erase(0, written);
  if (kept_.empty() && left_out_ > 0) {
    kept_ = fmt::format("petlab: {} lines are left out here: nobody read\n", left_out_);
    left_out_ = 0;
    write_kept(wait);
  }
}

}  // namespace petlab::cli
