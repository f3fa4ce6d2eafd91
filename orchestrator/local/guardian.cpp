#include "orchestrator/local/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/open_files.h"
#include "base/process_handle.h"
#include "base/signals.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/worker_mark.h"

namespace petlab::orchestrator {
namespace {

// A message is a pid: positive to watch that group, negative to release it. Writes of this size to
// a pipe are atomic.
constexpr int kMostGroups = 64;

void close_all_but(int kept) {
  // Standard input, output and error go to /dev/null: the guardian must not keep a terminal or a
  // pipe open.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
  base::close_files(3, kept - 1, base::CloseFiles::now);
  base::close_files(kept + 1, INT_MAX, base::CloseFiles::now);
}

// A watched process group. Its number can be reused once its leader has been reaped. The
// orchestrator reaps the leader only after it has released the group, but once the orchestrator is
// dead, any process may reap it. A handle of the leader therefore reports its end.
struct Watched {
  pid_t group = 0;  // 0: none
  base::ProcessHandle leader;
};

int elapsed_ms(const timespec& since) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int>((now.tv_sec - since.tv_sec) * 1000 +
                          (now.tv_nsec - since.tv_nsec) / 1'000'000);
}

// Only async-signal-safe calls: the parent's heap and locks are in an unknown state after the fork.
// All signals are blocked, and stay so.
[[noreturn]] void guard(int pipe_fd, int grace_ms, const char* asked) {
  ::setsid();
  ::prctl(PR_SET_NAME, "petlab-guardian");
  close_all_but(pipe_fd);
  Watched groups[kMostGroups] = {};
  for (;;) {
    pid_t message = 0;
    const ssize_t got = ::read(pipe_fd, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof message)) break;
    const pid_t from = message > 0 ? 0 : -message;
    Watched* const place =
        std::find_if(std::begin(groups), std::end(groups),
                     [&](const Watched& watched) { return watched.group == from; });
    if (place == std::end(groups)) continue;
    *place = {};
    if (message < 0) continue;
    // If the leader has been reaped already, the next message releases the group.
    base::ProcessHandle leader(message);
    if (leader) *place = {message, std::move(leader)};
  }
  timespec began{};
  ::clock_gettime(CLOCK_MONOTONIC, &began);
  const bool any = std::any_of(std::begin(groups), std::end(groups), [](const Watched& watched) {
    return watched.group != 0 && !watched.leader.is_gone();
  });
  const bool ask = any && first_to_ask(asked);
  for (const Watched& watched : groups) {
    if (watched.group == 0 || watched.leader.is_gone()) continue;
    if (ask) ::kill(-watched.group, SIGTERM);
    ::kill(-watched.group, SIGCONT);
  }
  // Kills what a leader leaves in its group, as soon as its end is seen: the group's number cannot
  // have been reused by then.
  for (const Watched& watched : groups) {
    if (watched.group == 0) continue;
    watched.leader.is_gone(std::max(0, grace_ms - elapsed_ms(began)));
    ::kill(-watched.group, SIGKILL);
  }
  ::_exit(0);
}

}  // namespace

Guardian::Guardian(std::chrono::milliseconds grace, const std::filesystem::path& asked) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot create a pipe for a guardian: {}", std::strerror(errno)));
  }
  base::FileDescriptor reading(ends[0]);
  pipe_ = base::FileDescriptor(ends[1]);
  const int grace_ms = static_cast<int>(grace.count());
  const base::SignalsHeldBack held_back;
  pid_ = ::fork();
  if (pid_ < 0)
    throw Error(fmt::format("cannot start a guardian process: {}", std::strerror(errno)));
  if (pid_ == 0) guard(reading.get(), grace_ms, asked.c_str());
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
