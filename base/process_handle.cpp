#include "base/process_handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace petlab::base {
namespace {

// Not in the headers of some supported systems.
#ifdef SYS_pidfd_open
constexpr long kPidfdOpen = SYS_pidfd_open;
constexpr long kPidfdSendSignal = SYS_pidfd_send_signal;
#else
constexpr long kPidfdOpen = 434;
constexpr long kPidfdSendSignal = 424;
#endif
constexpr int kLookAgainMs = 10;

// Formats "/proc/1234" with async-signal-safe functions only.
void proc_folder(pid_t pid, char (&path)[32]) {
  char digits[16];
  int count = 0;
  for (; pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
  std::strcpy(path, "/proc/");
  char* end = path + std::strlen(path);
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
}

// Reads the state from the stat file, which becomes unreadable once the process is reaped.
bool is_gone_in(int proc_folder) {
  const FileDescriptor stat(::openat(proc_folder, "stat", O_RDONLY | O_CLOEXEC));
  if (!stat) return errno == ENOENT || errno == ESRCH;
  char text[512];
  const ssize_t got = ::read(stat.get(), text, sizeof text - 1);
  if (got <= 0) return true;
  text[got] = '\0';
  // The name in parentheses may contain any characters.
  const char* name_end = std::strrchr(text, ')');
  return name_end == nullptr || name_end[1] == '\0' || name_end[2] == 'Z' || name_end[2] == 'X';
}

}  // namespace

ProcessHandle::ProcessHandle(pid_t pid)
    : fd_(static_cast<int>(::syscall(kPidfdOpen, pid, 0))), pid_(pid), is_pidfd_(fd_) {
  if (fd_ || errno == ESRCH || pid <= 0) return;
  char path[32];
  proc_folder(pid, path);
  fd_ = FileDescriptor(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool ProcessHandle::is_gone(int timeout_ms) const {
  if (is_pidfd_) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, timeout_ms) > 0;
  }
  for (;;) {
    if (is_gone_in(fd_.get())) return true;
    if (timeout_ms <= 0) return false;
    const int pause_ms = timeout_ms < kLookAgainMs ? timeout_ms : kLookAgainMs;
    const timespec pause{0, pause_ms * 1'000'000L};
    ::nanosleep(&pause, nullptr);
    timeout_ms -= pause_ms;
  }
}

bool ProcessHandle::send(int signal) const {
  if (is_pidfd_ && ::syscall(kPidfdSendSignal, fd_.get(), signal, nullptr, 0) == 0) return true;
  if (is_pidfd_ && errno != ENOSYS) return false;
  return !is_gone() && ::kill(pid_, signal) == 0;
}

}  // namespace petlab::base
