#include "orchestrator/local/start_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/signals.h"

namespace petlab::orchestrator {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, which shares our memory until it executes the program: only async-signal-safe
// calls, and nothing of ours is changed but `error`.
[[noreturn]] void become(const ProcessStart& start, int guardian, char* const* arguments,
                         char* const* environment, volatile int& error) {
  ::setpgid(0, 0);
  Guardian::watch_self(guardian);
  // The pipes may have numbers that standard input to error are to have.
  const int input = ::fcntl(start.input, F_DUPFD, 3);
  const int output = ::fcntl(start.output, F_DUPFD, 3);
  if (::dup2(input, 0) == 0 && ::dup2(output, 1) == 1 && ::dup2(output, 2) == 2) {
    ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    for (const int fd : start.kept) ::fcntl(fd, F_SETFD, 0);
    base::reset_signals();
    ::signal(SIGTERM, SIG_DFL);
    ::execve(start.program.c_str(), arguments, environment);
  }
  error = errno;
  ::_exit(127);
}

}  // namespace

pid_t start_process(const ProcessStart& start, const Guardian& guardian) {
  std::vector<std::string> words = {start.program};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(start.environment);
  volatile int error = 0;  // the child writes it
  pid_t pid = -1;
  {
    const base::SignalsHeldBack held_back;
    pid = ::vfork();
    if (pid == 0) become(start, guardian.pipe_fd(), arguments.data(), environment.data(), error);
    if (pid < 0) error = errno;
  }
  if (error == 0) return pid;
  if (pid > 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    guardian.release(pid);
  }
  throw std::system_error(error, std::system_category());
}

}  // namespace petlab::orchestrator
