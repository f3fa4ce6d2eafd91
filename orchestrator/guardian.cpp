#include "orchestrator/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "orchestrator/error.h"

namespace petlab::orchestrator {
namespace {

// A message is a pid: positive to watch that group, negative to release it. Writes of this size to
// a pipe are atomic.
constexpr int kMostGroups = 64;

void close_all_but(int kept) {
  // Standard input to error go to /dev/null: a terminal or a pipe must not stay open for us.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
  if (kept > 3) ::syscall(SYS_close_range, 3u, static_cast<unsigned>(kept - 1), 0u);
  ::syscall(SYS_close_range, static_cast<unsigned>(kept + 1), ~0u, 0u);
}

bool group_exists(pid_t group) { return ::kill(-group, 0) == 0 || errno == EPERM; }

// Only async-signal-safe calls: the parent's heap and locks are in an unknown state after the fork.
[[noreturn]] void guard(int pipe_fd, int grace_ms, const char* asked) {
  ::setsid();
  ::prctl(PR_SET_NAME, "petlab-guardian");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  close_all_but(pipe_fd);
  pid_t groups[kMostGroups] = {};
  for (;;) {
    pid_t message = 0;
    const ssize_t got = ::read(pipe_fd, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof message)) break;
    const pid_t from = message > 0 ? 0 : -message;
    const pid_t to = message > 0 ? message : 0;
    pid_t* place = std::find(std::begin(groups), std::end(groups), from);
    if (place != std::end(groups)) *place = to;
  }
  const bool any = std::any_of(std::begin(groups), std::end(groups),
                               [](pid_t group) { return group != 0 && group_exists(group); });
  const bool ask = any && first_to_ask(asked);
  for (const pid_t group : groups) {
    if (group != 0 && ask) ::kill(-group, SIGTERM);
    if (group != 0) ::kill(-group, SIGCONT);
  }
  // The groups' leaders are not our children, so their end is looked for: only now, when the
  // orchestrator is dead, and for the length of the grace.
  const timespec pause{0, 20'000'000};
  for (int waited_ms = 0; waited_ms < grace_ms; waited_ms += 20) {
    if (std::none_of(std::begin(groups), std::end(groups),
                     [](pid_t group) { return group != 0 && group_exists(group); })) {
      ::_exit(0);
    }
    ::nanosleep(&pause, nullptr);
  }
  for (const pid_t group : groups) {
    if (group != 0) ::kill(-group, SIGKILL);
  }
  ::_exit(0);
}

}  // namespace

std::filesystem::path asked_file(const std::filesystem::path& worker_lock) {
  return worker_lock.string() + ".asked";
}

bool first_to_ask(const char* asked_file) {
  const int made = ::open(asked_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (made < 0) return errno != EEXIST;
  ::close(made);
  return true;
}

Guardian::Guardian(std::chrono::milliseconds grace, const std::filesystem::path& asked) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("no pipe for a guardian: {}", std::strerror(errno)));
  }
  FileDescriptor reading(ends[0]);
  pipe_ = FileDescriptor(ends[1]);
  const int grace_ms = static_cast<int>(grace.count());
  pid_ = ::fork();
  if (pid_ < 0) throw Error(fmt::format("no process for a guardian: {}", std::strerror(errno)));
  if (pid_ == 0) guard(reading.get(), grace_ms, asked.c_str());
  death_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!death_) throw Error(fmt::format("no handle of a guardian: {}", std::strerror(errno)));
}

Guardian::~Guardian() {
  pipe_.reset();
  if (pid_ > 0) {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Guardian::watch_self(int pipe_fd) {
  const pid_t self = ::getpid();
  // A dead guardian is noticed and replaced by the orchestrator, which then watches us.
  [[maybe_unused]] const ssize_t sent = ::write(pipe_fd, &self, sizeof self);
}

void Guardian::watch(pid_t group) { send(group); }
void Guardian::release(pid_t group) const { send(-group); }

void Guardian::send(pid_t message) const {
  [[maybe_unused]] const ssize_t sent = ::write(pipe_.get(), &message, sizeof message);
}

bool Guardian::reap_if_dead() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

}  // namespace petlab::orchestrator
