#include "base/start_process.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "base/open_files.h"
#include "base/signals.h"

namespace petlab::base {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The given descriptors may be among 0 to 2 themselves, so they are copied to higher numbers first.
bool set_standard_files(const ProcessStart& start) {
  const int wanted[] = {start.input, start.output, start.errors};
  int copies[3];
  for (int fd = 0; fd < 3; ++fd) {
    copies[fd] = ::fcntl(wanted[fd], F_DUPFD_CLOEXEC, 3);
    if (copies[fd] < 0) return false;
  }
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(copies[fd], fd) != fd) return false;
  }
  return true;
}

// Builds a cpu_set_t for any number of processors.
std::vector<unsigned long> mask_of(const std::vector<int>& cores) {
  constexpr int kBits = CHAR_BIT * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const int core : cores) {
    const auto word = static_cast<std::size_t>(core / kBits);
    if (word >= mask.size()) mask.resize(word + 1);
    mask[word] |= 1UL << (core % kBits);
  }
  return mask;
}

// Runs in the child, which shares the parent's memory until exec: makes only async-signal-safe
// calls, and changes no memory except `error`.
[[noreturn]] void become(const ProcessStart& start, const std::vector<unsigned long>& cores,
                         pid_t parent, char* const* arguments, char* const* environment,
                         volatile int& error) {
  ::setpgid(0, 0);
  if (start.announce != nullptr) start.announce(start.announced_to);
  if (start.dies_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent ended before the call
  }
  if (set_standard_files(start)) {
    close_files(3, INT_MAX, CloseFiles::on_exec);
    for (const int fd : start.kept) ::fcntl(fd, F_SETFD, 0);
    reset_signals();
    if (start.hears_sigterm) ::signal(SIGTERM, SIG_DFL);
    restore_open_file_limit();
    // This fails if this process's set of cores has changed meanwhile. The child then keeps that
    // set.
    if (!cores.empty()) {
      ::sched_setaffinity(0, cores.size() * sizeof(unsigned long),
                          reinterpret_cast<const cpu_set_t*>(cores.data()));
    }
    ::execve(start.program.c_str(), arguments, environment);
  }
  error = errno;
  ::_exit(127);
}

// Children that did not end while reap_within() waited.
class Lingering {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }
  void reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

Lingering& lingering() {
  static Lingering all;
  return all;
}

}  // namespace

StartedProcess start_process(const ProcessStart& start) {
  lingering().reap();
  std::vector<std::string> words = {start.program};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(start.environment);
  const std::vector<unsigned long> cores = mask_of(start.cores);
  const pid_t self = ::getpid();
  volatile int error = 0;  // written by the child
  StartedProcess started;
  {
    const SignalsHeldBack held_back;
    started.pid = ::vfork();
    if (started.pid == 0) become(start, cores, self, arguments.data(), environment.data(), error);
    if (started.pid < 0) error = errno;
  }
  started.error = error;
  if (started.error != 0 && started.pid > 0) {
    while (::waitpid(started.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return started;
}

std::optional<int> reap_within(pid_t child, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int status = 0;;) {
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    if (reaped != 0) return status;
    if (std::chrono::steady_clock::now() >= deadline) break;
    ::usleep(1000);
  }
  lingering().add(child);
  return std::nullopt;
}

}  // namespace petlab::base
