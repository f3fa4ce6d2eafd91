#include "trainer/worker/event_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

Clock ticks() {
  return [now = 0.0]() mutable { return ++now; };
}

/// Limits the size of files that this process may write, during its lifetime.
class FileLimit {
 public:
  explicit FileLimit(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

/// A named pipe, which cannot be synced or truncated.
class Pipe {
 public:
  explicit Pipe(std::filesystem::path path) : path_(std::move(path)) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    read();
  }
  ~Pipe() { ::close(reader_); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void read() {
    reader_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader_ >= 0);
  }
  void stop_reading() { ::close(reader_); }

 private:
  std::filesystem::path path_;
  int reader_ = -1;
};

TEST_CASE("an event that fails on a full disk leaves no torn line", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "events.jsonl";
  EventLog events(file, ticks());
  events.write(protocol::Progress{1, 9, 0.5});
  const std::string first = testing::read_file(file);
  {
    const FileLimit limit(first.size() + 10);
    CHECK_THROWS_WITH(events.write(protocol::Progress{2, 9, 0.5}),
                      file.string() + ": cannot be written: File too large");
    CHECK(testing::read_file(file) == first);
  }
  events.write(protocol::Failed{"the disk was full", "error"});
  const std::string all = testing::read_file(file);
  REQUIRE(all.starts_with(first));
  const std::string second = all.substr(first.size());
  CHECK(second.find('\n') == second.size() - 1);
  const protocol::Event event = protocol::parse_event(second.substr(0, second.size() - 1));
  CHECK(event.seq == 1);
  CHECK(std::holds_alternative<protocol::Failed>(event.body));
}

TEST_CASE("nothing is written after a torn line that cannot be removed", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "events.jsonl";
  Pipe pipe(file);
  EventLog events(file, ticks());
  events.write(protocol::Progress{1, 9, 0.5});
  pipe.stop_reading();
  std::signal(SIGPIPE, SIG_IGN);
  const std::string wanted = file.string() + ": cannot be written: Broken pipe";
  CHECK_THROWS_WITH(events.write(protocol::Progress{2, 9, 0.5}), wanted);
  pipe.read();
  CHECK_THROWS_WITH(events.write(protocol::Progress{2, 9, 0.5}), wanted);
  std::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("nothing is written after an event that could not be synced", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "events.jsonl";
  const Pipe pipe(file);
  EventLog events(file, ticks());
  events.write(protocol::Progress{1, 9, 0.5});
  const std::string wanted = file.string() + ": cannot be synced: " + std::strerror(EINVAL);
  CHECK_THROWS_WITH(events.write(protocol::Checkpoint{1, "checkpoint/step-1.ckpt"}), wanted);
  CHECK_THROWS_WITH(events.write(protocol::Failed{"told too late", "error"}), wanted);
}

TEST_CASE("an event log refuses a file that already has events", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.write("events.jsonl", "{\"v\": 1, \"se");
  CHECK_THROWS_WITH(
      EventLog(file, ticks()),
      file.string() + ": already contains events, must be new: an attempt runs only once");
  CHECK(testing::read_file(file) == "{\"v\": 1, \"se");
}

}  // namespace
}  // namespace petlab::trainer
