#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace std::chrono_literals;
using petlab::base::ChildAnswer;
using petlab::base::ChildCommand;
using petlab::base::Children;
using petlab::base::run_child;
using petlab::testing::TempDir;
using Ending = ChildAnswer::Ending;

namespace {

ChildCommand shell(const std::string& script) {
  ChildCommand command;
  command.program = "/bin/sh";
  command.arguments = {"-c", script};
  command.time_limit = 30s;
  return command;
}

// Returns true if the process ends within 5 s. The process that adopts orphans may reap them
// slowly.
bool ends(pid_t pid) {
  for (int tries = 0; tries < 500; ++tries) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z") return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

auto since(std::chrono::steady_clock::time_point began) {
  return std::chrono::steady_clock::now() - began;
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace

TEST_CASE("A child's outputs and exit code are reported separately", "[base]") {
  const ChildAnswer fine = run_child(shell("echo out; echo err >&2"));
  CHECK(fine.ending == Ending::exited);
  CHECK(fine.exit_code == 0);
  CHECK(fine.problem.empty());
  CHECK(fine.output == "out\n");
  CHECK(fine.errors == "err\n");
  const ChildAnswer failed = run_child(shell("echo half; exit 3"));
  CHECK(failed.exit_code == 3);
  CHECK(failed.problem == "ended with exit code 3");
  CHECK(failed.output == "half\n");
  const ChildAnswer killed = run_child(shell("kill -SEGV $$"));
  CHECK(killed.ending == Ending::signalled);
  CHECK(killed.exit_code == -1);
  CHECK(killed.problem == "was killed by signal 11 (Segmentation fault)");
}

TEST_CASE("A child reads the given standard input to its end", "[base]") {
  CHECK(run_child(shell("cat")).output.empty());
  ChildCommand command = shell("cat");
  command.input.assign(3'000'000, 'x');
  command.output_limit = 4'000'000;
  CHECK(run_child(command).output == command.input);
  // A child that reads none of its input causes no SIGPIPE.
  command.arguments = {"-c", "exit 0"};
  CHECK(run_child(command).problem.empty());
}

TEST_CASE("A child over its time limit is killed with its descendants", "[base]") {
  ChildCommand command = shell("sleep 60 & echo $!; trap '' TERM; wait; sleep 60");
  command.time_limit = 300ms;
  const auto began = std::chrono::steady_clock::now();
  const ChildAnswer answer = run_child(command);
  CHECK(since(began) < 20s);
  CHECK(answer.ending == Ending::timed_out);
  CHECK(answer.exit_code == -1);
  CHECK(answer.problem == "did not finish within 300 ms");
  CHECK(ends(std::stoi(answer.output)));
}

TEST_CASE("A child that prints too much is killed, on either output", "[base]") {
  for (const std::string script : {"yes", "yes >&2"}) {
    INFO(script);
    ChildCommand command = shell(script);
    command.output_limit = 100'000;
    const ChildAnswer answer = run_child(command);
    CHECK(answer.ending == Ending::too_much);
    CHECK(answer.problem == "printed more than 100000 bytes");
    CHECK(std::max(answer.output.size(), answer.errors.size()) == 100'000);
  }
  ChildCommand command = shell("head -c 100000 /dev/zero");
  command.output_limit = 100'000;
  CHECK(run_child(command).problem.empty());
}

TEST_CASE("Processes that a child leaves behind are killed, and not waited for", "[base]") {
  auto began = std::chrono::steady_clock::now();
  const ChildAnswer answer = run_child(shell("sleep 60 & echo $!"));
  CHECK(since(began) < 20s);
  CHECK(answer.problem.empty());
  CHECK(ends(std::stoi(answer.output)));
  // A process that left the group keeps the outputs open, but is neither killed nor waited for.
  began = std::chrono::steady_clock::now();
  const ChildAnswer left = run_child(shell("setsid sh -c 'echo $$; sleep 60' & sleep 0.3"));
  CHECK(since(began) < 20s);
  CHECK(left.problem.empty());
  const pid_t sleeping = std::stoi(left.output);
  CHECK(::kill(-sleeping, SIGKILL) == 0);
}

TEST_CASE("A failed start reports why", "[base]") {
  ChildCommand command;
  command.program = "/nowhere/program";
  ChildAnswer answer = run_child(command);
  CHECK(answer.ending == Ending::not_started);
  CHECK(answer.problem == "cannot be started: No such file or directory");
  const TempDir folder;
  command.program = folder.write("text", "no program").string();
  CHECK(run_child(command).problem == "cannot be started: Permission denied");
  std::filesystem::permissions(command.program, std::filesystem::perms::owner_all);
  CHECK(run_child(command).problem == "cannot be started: Exec format error");
  // Each forked child was reaped.
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("A child that ends in time does not time out because of a suspended caller", "[base]") {
  boost::asio::io_context loop;
  Children children(loop);
  ChildCommand command = shell("echo said");
  command.time_limit = 100ms;
  ChildAnswer answer;
  children.run(command, [&](ChildAnswer result) { answer = std::move(result); });
  std::this_thread::sleep_for(500ms);  // as if this process was suspended by Ctrl-Z
  loop.run();
  CHECK(answer.problem.empty());
  CHECK(answer.ending == Ending::exited);
  CHECK(answer.output == "said\n");
}

TEST_CASE("A child inherits no signals, files or environment that were not passed on", "[base]") {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  sigset_t some;
  sigset_t mask;
  ::sigemptyset(&some);
  ::sigaddset(&some, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &some, &mask);
  const int file = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  const std::size_t files = open_files();
  ChildCommand command = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/$$/fd; env");
  command.environment = {"PATH=/usr/bin:/bin", "ONLY=this"};
  const ChildAnswer answer = run_child(command);
  CHECK(open_files() == files);
  ::close(file);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
  CHECK(answer.output.find("SigBlk:\t0000000000000000\n") != std::string::npos);
  const auto ignored = answer.output.substr(answer.output.find("SigIgn:\t") + 8, 16);
  CHECK((std::stoull(ignored, nullptr, 16) & (1ull << (SIGPIPE - 1))) == 0);
  CHECK(answer.output.find("\n0\n1\n2\n") != std::string::npos);
  CHECK(answer.output.find("\n3\n") == std::string::npos);
  CHECK(answer.output.find("ONLY=this\n") != std::string::npos);
  CHECK(answer.output.find("HOME=") == std::string::npos);
}

TEST_CASE("A child has its own process group and dies with its parent", "[base]") {
  const TempDir folder;
  const auto file = folder.path() / "pid";
  const pid_t starter = ::fork();
  if (starter == 0) {
    run_child(shell("cd '" + folder.path().string() +
                    "' && echo $$ $(ps -o pgid= -p $$) > new && mv new pid && exec sleep 60"));
    ::_exit(0);
  }
  pid_t pid = 0;
  pid_t group = 0;
  for (int tries = 0; tries < 1000 && group == 0; ++tries) {
    std::ifstream(file) >> pid >> group;
    std::this_thread::sleep_for(10ms);
  }
  CHECK(group == pid);
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  REQUIRE(pid > 0);
  CHECK(ends(pid));
}

TEST_CASE("Several children run in parallel, and end with their owner", "[base]") {
  boost::asio::io_context loop;
  std::vector<std::string> reported;
  std::vector<pid_t> pids;
  {
    Children children(loop);
    const auto report = [&](const ChildAnswer& answer) { reported.push_back(answer.output); };
    children.run(shell("sleep 0.5; echo late"), report);
    children.run(shell("echo early"), [&](const ChildAnswer& answer) {
      report(answer);
      children.run(shell("echo next"), report);
    });
    ChildCommand nowhere;
    nowhere.program = "/nowhere/program";
    children.run(nowhere, [&](const ChildAnswer& answer) {
      reported.push_back(answer.problem.substr(0, 17));
    });
    CHECK(reported.empty());
    loop.run();
    CHECK(reported == std::vector<std::string>{"cannot be started", "early\n", "next\n", "late\n"});
    const TempDir folder;
    const std::string file = (folder.path() / "pid").string();
    children.run(shell("sleep 60 & echo $$ $! >'" + file + "'; wait"),
                 [&](const ChildAnswer&) { reported.push_back("of one that was given up"); });
    for (int tries = 0; tries < 1000 && pids.size() < 2; ++tries) {
      pids.clear();
      std::ifstream in(file);
      for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
      std::this_thread::sleep_for(10ms);
    }
  }
  REQUIRE(pids.size() == 2);
  CHECK(ends(pids[0]));
  CHECK(ends(pids[1]));
  loop.restart();
  loop.run();
  CHECK(reported.size() == 4);
}
