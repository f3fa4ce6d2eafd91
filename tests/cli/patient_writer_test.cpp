#include "cli/output/patient_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "cli/output/screen.h"
#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

using base::FileDescriptor;

// A pseudo terminal. Only read() reads its leader's side.
struct PseudoTerminal {
  PseudoTerminal() {
    REQUIRE(::grantpt(leader.get()) == 0);
    REQUIRE(::unlockpt(leader.get()) == 0);
    follower = FileDescriptor(::open(::ptsname(leader.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(follower);
  }
  // The new output, without the carriage returns that terminals add.
  std::string read() const {
    std::string text;
    char bytes[4096];
    pollfd ready{leader.get(), POLLIN, 0};
    while (::poll(&ready, 1, 50) > 0) {
      const ssize_t count = ::read(leader.get(), bytes, sizeof bytes);
      REQUIRE(count > 0);
      text.append(bytes, static_cast<std::size_t>(count));
    }
    std::erase(text, '\r');
    return text;
  }
  void stop() const { REQUIRE(::tcflow(follower.get(), TCOOFF) == 0); }
  void release() const { REQUIRE(::tcflow(follower.get(), TCOON) == 0); }

  FileDescriptor leader{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  FileDescriptor follower;
};

// No file can be opened while this object exists.
class NoFiles {
 public:
  NoFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::string lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line) {
    text += "line " + std::to_string(line) + " of ünïcode\n";
  }
  return text;
}

TEST_CASE("Output that a terminal cannot accept is kept and written later in order", "[cli]") {
  const PseudoTerminal terminal;
  std::optional<PatientWriter> writer;
  SECTION("the terminal can be reopened") { writer.emplace(terminal.follower.get()); }
  SECTION("the terminal cannot be reopened") {
    const NoFiles none;
    writer.emplace(terminal.follower.get());
  }
  const std::string text = lines(10000);
  writer->keep(text);
  REQUIRE_FALSE(writer->flush());
  CHECK((::fcntl(terminal.follower.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK_FALSE(writer->offer("a picture"));
  writer->keep("the last line\n");
  std::string received = terminal.read();
  CHECK(received.size() < text.size());
  while (!writer->flush()) received += terminal.read();
  received += terminal.read();
  CHECK((received == text + "the last line\n"));
  CHECK(writer->offer("a picture"));
  CHECK(terminal.read() == "a picture");
  // The rest of a picture that is too large for one write also comes later.
  CHECK(writer->offer(text));
  REQUIRE_FALSE(writer->flush());
  received = terminal.read();
  while (!writer->flush()) received += terminal.read();
  received += terminal.read();
  CHECK((received == text));
}

TEST_CASE("Lines are dropped, and counted, if too many are kept", "[cli]") {
  const PseudoTerminal terminal;
  PatientWriter writer(terminal.follower.get());
  terminal.stop();
  writer.keep("first\n");
  CHECK_FALSE(writer.flush());
  writer.keep(std::string(PatientWriter::kMostKept, '\n'));
  writer.keep("last\n");
  CHECK_FALSE(writer.flush());
  terminal.release();
  CHECK(writer.flush());
  CHECK(terminal.read() ==
        "first\nlast\npetlab: 16777216 lines were dropped here: nothing read them\n");
}

TEST_CASE("A writer does not wait for a closed reader", "[cli]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ::close(ends[0]);
  const FileDescriptor writing(ends[1]);
  const auto former = ::signal(SIGPIPE, SIG_IGN);
  PatientWriter writer(writing.get());
  writer.keep(lines(10000));
  CHECK(writer.flush());
  writer.finish();
  ::signal(SIGPIPE, former);
}

TEST_CASE("A stopped terminal later gets the printed lines and the newest picture", "[cli]") {
  const PseudoTerminal terminal;
  PatientWriter writer(terminal.follower.get());
  Screen screen(writer);
  screen.show({"one", "two"});
  CHECK(terminal.read() == "one\033[K\ntwo\033[J");
  terminal.stop();
  screen.show({"not seen"});
  screen.print({"a note"});
  screen.show({"not seen either"});
  screen.print({"another note"});
  screen.show({"nor this"});
  CHECK(terminal.read().empty());
  terminal.release();
  screen.show({"last"});
  CHECK(terminal.read() == "\033[1A\033[Ja note\nanother note\nlast\033[J");
  // Showing the same picture again writes nothing.
  screen.show({"last"});
  CHECK(terminal.read().empty());
}

}  // namespace
}  // namespace petlab::cli
