// Processes that were identified earlier, and whose pid may have been reused since.
#include "orchestrator/host/process_identity.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/file_descriptor.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/recovery/evidence.h"
#include "tests/support/catch.h"

using namespace petlab::orchestrator;

namespace {

constexpr const char* kName = "PETLAB_TEST_PROCESS";

/// A sleeping process with one variable in its environment, killed at the end of its scope.
class Sleeper {
 public:
  explicit Sleeper(const std::string& value) : pid_(::fork()) {
    if (pid_ == 0) {
      ::setenv(kName, value.c_str(), 1);
      ::execl("/bin/sleep", "sleep", "60", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    while (pid_ > 0 && !hold_process(pid_, kName, value)) ::usleep(1000);  // until exec
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }
  /// The signal that ended it; 0: it still runs.
  int ended_by() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == 0 ? 0 : info.si_status;
  }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("A pid that now belongs to another process gets no signal", "[orchestrator][kernel]") {
  const Sleeper ours("ours");
  const Sleeper another("another");
  CHECK(processes_with_environment(kName, "ours") == std::vector<pid_t>{ours.pid()});
  const petlab::base::ProcessHandle held = hold_process(ours.pid(), kName, "ours");
  REQUIRE(held);
  // As if the second pid had been found while it was ours.
  CHECK_FALSE(hold_process(another.pid(), kName, "ours"));
  CHECK_FALSE(held.is_gone());
  CHECK(held.send(SIGTERM));
  for (int tries = 0; tries < 2000 && !held.is_gone(); ++tries) ::usleep(1000);
  CHECK(held.is_gone());
  CHECK(ours.ended_by() == SIGTERM);
  CHECK(another.ended_by() == 0);
}

TEST_CASE("A process that reuses the pid of an orchestrator is not asked to stop",
          "[orchestrator][kernel]") {
  const Sleeper process("orchestrator");
  RunningOrchestrator seen;
  seen.pid = process.pid();
  seen.reachable = true;
  const std::int64_t start = process_start(process.pid()).value();
  seen.owner = to_string(OwnerName{process.pid(), start - 1, "89ab"});
  CHECK_FALSE(ask_to_stop(seen, true));
  CHECK(process.ended_by() == 0);
  seen.owner = to_string(OwnerName{process.pid(), start, "89ab"});
  CHECK(ask_to_stop(seen, true));
  siginfo_t info{};
  CHECK(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT) == 0);
  CHECK(info.si_status == SIGTERM);
}
