#include "base/process_handle.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <chrono>

#include "base/file_descriptor.h"
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

TEST_CASE("An event of a closed descriptor is not mistaken for the end of a child",
          "[base][kernel]") {
  boost::asio::io_context loop;
  base::ProcessEnd end(loop);
  bool ended = false;
  const pid_t pid = waiting_child();
  // Both pipes are ready, so both events are in the loop's queue when the first is handled. Then
  // the second pipe is closed, and the loop reuses its record for the next descriptor.
  boost::asio::readable_pipe pipes[] = {boost::asio::readable_pipe(loop),
                                        boost::asio::readable_pipe(loop)};
  base::FileDescriptor writing[2];
  int handled = 0;
  char byte = 'x';
  for (int at = 0; at < 2; ++at) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    pipes[at].assign(ends[0]);
    writing[at] = base::FileDescriptor(ends[1]);
    pipes[at].async_read_some(boost::asio::buffer(&byte, 1), [&, at](auto error, std::size_t) {
      if (error || handled++ > 0) return;
      pipes[1 - at].close();
      end.watch(pid, [&ended] { ended = true; });
    });
  }
  for (const base::FileDescriptor& one : writing) REQUIRE(::write(one.get(), "x", 1) == 1);
  loop.run_for(std::chrono::milliseconds(50));
  CHECK(handled == 1);
  CHECK_FALSE(ended);
  CHECK(::kill(pid, 0) == 0);
  ::kill(pid, SIGKILL);
  loop.restart();
  for (int tries = 0; tries < 1000 && !ended; ++tries) {
    loop.run_one_for(std::chrono::milliseconds(20));
  }
  CHECK(ended);
  ::waitpid(pid, nullptr, 0);
}

TEST_CASE("A handle refers to its process even after the process is reaped", "[base][kernel]") {
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

TEST_CASE("The end of a child is reported once, and the child is not reaped", "[base][kernel]") {
  boost::asio::io_context loop;
  base::ProcessEnd end(loop);
  const pid_t pid = waiting_child();
  int reports = 0;
  end.watch(pid, [&] { ++reports; });
  loop.poll();
  CHECK(reports == 0);
  ::kill(pid, SIGKILL);
  loop.restart();
  loop.run();
  CHECK(reports == 1);
  CHECK(::waitpid(pid, nullptr, WNOHANG) == pid);
  // The end of a child that is no longer watched is not reported.
  const pid_t other = waiting_child();
  {
    base::ProcessEnd unwatched(loop);
    unwatched.watch(other, [&] { ++reports; });
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  loop.restart();
  loop.run();
  CHECK(reports == 1);
}
