#include "tests/support/broken_invariant.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>

#include "base/file_descriptor.h"
#include "base/invariant.h"

namespace petlab::testing {

std::string broken_invariant(const std::function<void()>& action) {
  const base::FileDescriptor printed(::memfd_create("stderr", MFD_CLOEXEC));
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(printed.get(), STDERR_FILENO);
    try {
      action();
    } catch (const std::exception& error) {
      base::write_all(STDERR_FILENO, error.what());
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::array<char, 4096> text;
  const ssize_t size = ::pread(printed.get(), text.data(), text.size(), 0);
  const std::string message(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != base::kBrokenInvariant) {
    return "status " + std::to_string(status) + ": " + message;
  }
  const std::size_t place = message.find("): ") + 3;
  return message.substr(place, message.find("; it ended before") - place);
}

}  // namespace petlab::testing
