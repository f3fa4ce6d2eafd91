#include "cli/setup/samples.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ostream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/start_process.h"
#include "base/temporary_folder.h"
#include "base/tools_python.h"
#include "cli/setup/embedded_files.h"

namespace petlab::cli {
namespace {

constexpr auto kLookForSignals = std::chrono::milliseconds(50);
// samples.py removes what it has downloaded within this time.
constexpr auto kCleanUp = std::chrono::seconds(5);

volatile sig_atomic_t samples_interrupted = 0;

// Records SIGINT and SIGTERM during its lifetime.
class InterruptsRecorded {
 public:
  InterruptsRecorded() {
    samples_interrupted = 0;
    ::sigaction(SIGINT, nullptr, &before_int_);
    ::sigaction(SIGTERM, nullptr, &before_term_);
    for (const int signal : {SIGINT, SIGTERM}) {
      base::handle_unless_ignored(signal, [](int) { samples_interrupted = 1; });
    }
  }
  ~InterruptsRecorded() {
    ::sigaction(SIGINT, &before_int_, nullptr);
    ::sigaction(SIGTERM, &before_term_, nullptr);
  }
  InterruptsRecorded(const InterruptsRecorded&) = delete;
  InterruptsRecorded& operator=(const InterruptsRecorded&) = delete;

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

base::ProcessStart start_of(const base::ToolsPython& python, const std::filesystem::path& script,
                            const std::filesystem::path& home) {
  base::ProcessStart start;
  start.program = python.program.string();
  start.arguments = python.arguments(script, {home.string(), "petlab"});
  for (char** entry = ::environ; *entry != nullptr; ++entry) start.environment.emplace_back(*entry);
  start.input = STDIN_FILENO;
  start.output = STDOUT_FILENO;
  start.errors = STDERR_FILENO;
  start.dies_with_parent = true;
  start.hears_sigterm = true;
  return start;
}

// Waits for the process and returns its status as from waitpid. Passes an interrupt on to its
// group, because pip runs in it.
int wait_for(pid_t child) {
  int status = 0;
  while (samples_interrupted == 0) {
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    if (reaped != 0) return reaped > 0 ? status : 0;
    ::usleep(std::chrono::microseconds(kLookForSignals).count());
  }
  ::kill(-child, SIGTERM);
  const std::optional<int> ended = base::reap_within(child, kCleanUp);
  ::kill(-child, SIGKILL);
  return ended.value_or(SIGKILL);
}

}  // namespace

int get_samples(const std::filesystem::path& home, Streams streams) {
  const base::ToolsPython python = base::tools_python(home);
  if (const std::string problem = python.problem(); !problem.empty()) throw base::Error(problem);
  const base::TemporaryFolder workshop("petlab-samples");
  const std::filesystem::path script = workshop.path() / "samples.py";
  base::write_file_atomically(script, reports::file_of(embedded_files(), "samples.py"));
  streams.out.flush();
  const InterruptsRecorded interrupts;
  const base::StartedProcess started = base::start_process(start_of(python, script, home));
  if (started.error != 0) {
    throw base::Error(fmt::format("{} cannot be started: {}", python.program.string(),
                                  std::strerror(started.error)));
  }
  const int status = wait_for(started.pid);
  if (samples_interrupted != 0) {
    streams.err << "interrupted; run the same command to resume\n";
    return kInterrupted;
  }
  if (WIFSIGNALED(status)) {
    throw base::Error(fmt::format("{}: downloading the samples was killed by signal {}",
                                  python.program.string(), WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == 0 ? kDone : kSomeFailed;
}

}  // namespace petlab::cli
