#include "orchestrator/local/start_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/support/catch.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

// Starts `sh -c script` and returns what it printed, in words.
std::vector<std::string> words_of(const std::string& script, ProcessStart start = {}) {
  const Guardian guardian(std::chrono::milliseconds(100), "/there/is/no/such/mark");
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  base::FileDescriptor reading(ends[0]);
  base::FileDescriptor writing(ends[1]);
  const base::FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  start.program = "/bin/sh";
  start.arguments = {"-c", script};
  start.input = nothing.get();
  start.output = writing.get();
  const pid_t pid = start_process(start, guardian);
  writing.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  CHECK(::waitpid(pid, nullptr, 0) == pid);
  guardian.release(pid);
  std::istringstream in(text);
  std::vector<std::string> words = {std::to_string(pid)};
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("A process gets its words, its environment and a group of its own", "[orchestrator]") {
  ProcessStart start;
  start.environment = {"COLOUR=green", "PATH=/bin:/usr/bin"};
  const auto words = words_of("echo $COLOUR $(cut -d' ' -f5 /proc/$$/stat); echo error >&2", start);
  REQUIRE(words.size() == 4);
  CHECK(words[1] == "green");
  CHECK(words[2] == words[0]);  // its group has its number
  CHECK(words[3] == "error");
}

TEST_CASE("A process inherits the files that are named, and no others", "[orchestrator]") {
  const base::FileDescriptor kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const base::FileDescriptor other(::open("/dev/null", O_RDONLY));
  ProcessStart start;
  start.kept = {kept.get()};
  const auto words =
      words_of("for fd in " + std::to_string(kept.get()) + " " + std::to_string(other.get()) +
                   "; do [ -e /proc/$$/fd/$fd ] && echo $fd; done",
               start);
  CHECK(std::vector<std::string>(words.begin() + 1, words.end()) ==
        std::vector<std::string>{std::to_string(kept.get())});
}

TEST_CASE("A process begins with no signal blocked, and its parent keeps its own so",
          "[orchestrator]") {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto words = words_of(
      "while read name value; do case $name in SigBlk:) echo $value;; esac; done "
      "</proc/self/status");
  sigset_t after;
  ::sigprocmask(SIG_SETMASK, &before, &after);
  REQUIRE(words.size() == 2);
  CHECK(words[1] == "0000000000000000");
  CHECK(sigismember(&after, SIGUSR2) == 1);
  CHECK(sigismember(&after, SIGUSR1) == 0);
}

TEST_CASE("A program that is not there leaves no process", "[orchestrator]") {
  const Guardian guardian(std::chrono::milliseconds(100), "/there/is/no/such/mark");
  const base::FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ProcessStart start;
  start.program = "/there/is/no/such/program";
  start.input = start.output = nothing.get();
  try {
    start_process(start, guardian);
    FAIL("it was started");
  } catch (const std::system_error& error) {
    CHECK(error.code().value() == ENOENT);
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == 0);  // the guardian alone is left
}

TEST_CASE("A process does not inherit that its parent ignores SIGPIPE", "[orchestrator]") {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const auto words = words_of(
      "while read name value; do case $name in SigIgn:) echo $value;; esac; done "
      "</proc/self/status");
  ::sigaction(SIGPIPE, &before, nullptr);
  REQUIRE(words.size() == 2);
  CHECK((std::stoull(words[1], nullptr, 16) & (1ull << (SIGPIPE - 1))) == 0);
}
