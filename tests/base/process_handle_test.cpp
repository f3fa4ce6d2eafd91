#include "base/process_handle.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/process_end.h"
#include "tests/support/catch.h"

using namespace petlab;
using base::ProcessHandle;

namespace {

pid_t waiting_child() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  return pid;
}

}  // namespace

TEST_CASE("A handle means its process, also after that is reaped", "[base][kernel]") {
  const pid_t pid = waiting_child();
  const ProcessHandle handle(pid);
  REQUIRE(handle);
  CHECK_FALSE(handle.is_gone());
  CHECK_FALSE(handle.is_gone(20));
  CHECK(handle.send(SIGKILL));
  CHECK(handle.is_gone(10'000));  // a zombie is gone
  CHECK(::waitpid(pid, nullptr, 0) == pid);
  CHECK(handle.is_gone());
  CHECK_FALSE(handle.send(0));
  CHECK_FALSE(ProcessHandle(pid));
}

TEST_CASE("The end of a child is told once, and the child is left to be reaped", "[base][kernel]") {
  boost::asio::io_context loop;
  base::ProcessEnd end(loop);
  const pid_t pid = waiting_child();
  int told = 0;
  end.watch(pid, [&] { ++told; });
  loop.poll();
  CHECK(told == 0);
  ::kill(pid, SIGKILL);
  loop.restart();
  loop.run();
  CHECK(told == 1);
  CHECK(::waitpid(pid, nullptr, WNOHANG) == pid);
  // Nothing is told of one that is not watched any more.
  const pid_t other = waiting_child();
  {
    base::ProcessEnd unwatched(loop);
    unwatched.watch(other, [&] { ++told; });
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  loop.restart();
  loop.run();
  CHECK(told == 1);
}
