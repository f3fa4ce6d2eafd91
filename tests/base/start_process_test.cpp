#include "base/start_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/open_files.h"
#include "tests/support/catch.h"

using namespace petlab;
using base::ProcessStart;

namespace {

// Starts `sh -c script` and returns what it printed, in words.
std::vector<std::string> words_of(const std::string& script, ProcessStart start = {}) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  base::FileDescriptor reading(ends[0]);
  base::FileDescriptor writing(ends[1]);
  const base::FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  start.program = "/bin/sh";
  start.arguments = {"-c", script};
  start.input = nothing.get();
  start.output = start.errors = writing.get();
  const pid_t pid = base::start_process(start).pid;
  writing.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  CHECK(::waitpid(pid, nullptr, 0) == pid);
  std::istringstream in(text);
  std::vector<std::string> words = {std::to_string(pid)};
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("A process gets its arguments, its environment and its own group", "[base]") {
  ProcessStart start;
  start.environment = {"COLOUR=green", "PATH=/bin:/usr/bin"};
  const auto words = words_of("echo $COLOUR $(cut -d' ' -f5 /proc/$$/stat); echo error >&2", start);
  REQUIRE(words.size() == 4);
  CHECK(words[1] == "green");
  CHECK(words[2] == words[0]);  // the group has the number of the process
  CHECK(words[3] == "error");
}

TEST_CASE("A process inherits the listed files, and no others", "[base]") {
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

TEST_CASE("A process starts with no signal blocked, and its parent's mask is unchanged", "[base]") {
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

TEST_CASE("Starting a missing program leaves no process behind", "[base]") {
  const base::FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ProcessStart start;
  start.program = "/there/is/no/such/program";
  start.input = start.output = start.errors = nothing.get();
  CHECK(base::start_process(start).error == ENOENT);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("A process without free descriptors for its standard files is not started", "[base]") {
  const base::FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  ProcessStart start;
  start.program = "/bin/true";
  start.input = start.output = start.errors = nothing.get();
  // Room for none, one or two of the three copies that the child makes first.
  for (int room = 0; room < 3; ++room) {
    const rlimit tight{static_cast<rlim_t>(nothing.get() + 1 + room), before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
    const base::StartedProcess started = base::start_process(start);
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(started.error == EMFILE);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  }
}

TEST_CASE("Programs get the original limit of open files of this process", "[base]") {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{256, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK(base::raise_open_file_limit() == before.rlim_max);
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  CHECK(now.rlim_cur == before.rlim_max);
  const auto words = words_of("ulimit -S -n; ulimit -H -n");
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(words.size() == 3);
  CHECK(words[1] == "256");
  CHECK(words[2] == std::to_string(before.rlim_max));
}

TEST_CASE("A process does not inherit an ignored SIGPIPE", "[base]") {
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
