// Signals to process groups: of workers, whose number the kernel may reuse, and of a terminal's
// Ctrl-C.
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/local/guardian.h"
#include "orchestrator/local/local_launcher.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace {

bool recording = false;
// For each signal to a group: whether the leader, or its zombie, still had the number.
std::vector<bool> has_number;

bool interrupting_forks = false;

// Runs in the child of each fork, as if Ctrl-C came before the child leaves the terminal's group.
void interrupt_fork() {
  if (interrupting_forks) ::raise(SIGINT);
}

}  // namespace

// Replaces the C library's function in the whole program.
extern "C" int kill(pid_t pid, int signal) noexcept {
  if (recording && pid < -1) {
    has_number.push_back(std::filesystem::exists("/proc/" + std::to_string(-pid)));
  }
  return static_cast<int>(::syscall(SYS_kill, pid, signal));
}

namespace petlab::orchestrator {
namespace {

using namespace std::chrono_literals;

// Forks a child with this pid in its own group. Returns -1 if that is not allowed here.
pid_t fork_as(pid_t pid) {
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<std::uint64_t>(&pid);
  how.set_tid_size = 1;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
  if (child == 0) {
    ::setpgid(0, 0);
    for (;;) ::pause();
  }
  return child;
}

bool is_running(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) == 0; }

TEST_CASE("The group of an ended worker is signalled before its number can be reused",
          "[orchestrator]") {
  const testing::TempDir folder;
  const std::filesystem::path attempt = folder.path() / "runs" / "trial" / "1";
  for (const std::filesystem::path& one :
       {folder.path() / "slots", folder.path() / "locks", attempt}) {
    std::filesystem::create_directories(one);
  }
  boost::asio::io_context loop;
  LocalOptions options;
  options.worker = WorkerCommand("/bin/true");
  options.one_process_a_trial = true;
  options.slots_folder = folder.path() / "slots";
  options.locks_folder = folder.path() / "locks";
  options.owner = "owner";
  const auto launcher = make_local_launcher(loop, options);
  const auto slot = launcher->acquire_slot(1);
  REQUIRE(slot);
  has_number.clear();
  recording = true;
  bool ended = false;
  const auto worker = launcher->start(*slot, {attempt}, [&](const WorkerEnd&) { ended = true; });
  const auto pid = static_cast<pid_t>(worker->launch().pid);
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!ended && std::chrono::steady_clock::now() < deadline) loop.run_one_for(100ms);
  recording = false;
  REQUIRE(ended);
  CHECK(has_number == std::vector<bool>{true});
  // The worker was reaped, too.
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
}

TEST_CASE("A Ctrl-C while a guardian starts is heard once", "[orchestrator]") {
  const testing::TempDir folder;
  boost::asio::io_context loop;
  boost::asio::signal_set signals(loop, SIGINT);
  int heard = 0;
  signals.async_wait([&](const boost::system::error_code& error, int) { heard += error ? 0 : 1; });
  REQUIRE(::pthread_atfork(nullptr, nullptr, interrupt_fork) == 0);
  interrupting_forks = true;
  { const Guardian guardian(1s, folder.path() / "asked"); }
  interrupting_forks = false;
  // The signal that this process itself would get is not sent here, so none may arrive.
  loop.poll();
  CHECK(heard == 0);
}

TEST_CASE("A guardian does not signal a group that reuses the number of an ended one",
          "[orchestrator]") {
  // Orphans of the orchestrator become our children, so we decide when a pid becomes free.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const testing::TempDir folder;
  const pid_t orchestrator = ::fork();
  REQUIRE(orchestrator >= 0);
  if (orchestrator == 0) {
    Guardian guardian(1500ms, folder.path() / "asked");
    const pid_t leader = ::fork();
    if (leader == 0) {
      ::setpgid(0, 0);
      ::signal(SIGTERM, SIG_IGN);
      Guardian::watch_self(guardian.pipe_fd());
      const pid_t pids[] = {::getpid(), guardian.pid()};
      [[maybe_unused]] const ssize_t written = ::write(ends[1], pids, sizeof pids);
      std::this_thread::sleep_for(300ms);
      ::_exit(0);
    }
    for (;;) ::pause();
  }
  pid_t pids[2] = {};
  REQUIRE(::read(ends[0], pids, sizeof pids) == sizeof pids);
  const auto [leader, guardian] = pids;
  ::kill(orchestrator, SIGKILL);
  ::waitpid(orchestrator, nullptr, 0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(leader), &info, WEXITED | WNOWAIT);
  std::this_thread::sleep_for(200ms);  // the guardian notices the end, too
  ::waitpid(leader, nullptr, 0);
  const pid_t other = fork_as(leader);
  if (other < 0) {
    testing::skip("a process cannot be given a number here");
  } else {
    CHECK(other == leader);
  }
  ::waitpid(guardian, nullptr, 0);
  if (other > 0) {
    CHECK(is_running(other));
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace petlab::orchestrator
