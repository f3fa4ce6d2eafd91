#include "base/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/file_descriptor.h"
#include "base/process_end.h"
#include "base/start_process.h"

namespace petlab::base {
namespace {

namespace asio = boost::asio;

// Time to read the last output of an ended child while other processes hold its pipes open.
constexpr auto kReadOn = std::chrono::seconds(1);
// Enough for a process to end after SIGKILL.
constexpr auto kGoneWithin = std::chrono::milliseconds(100);

// A file rather than a pipe: writing to a pipe raises a signal once its reader has ended, and
// blocks when it is full.
FileDescriptor input_of(const std::string& text, std::string& problem) {
  FileDescriptor file(text.empty() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC)
                                   : ::memfd_create("petlab-input", MFD_CLOEXEC));
  if (!file) problem = std::strerror(errno);
  if (file && !write_all(file.get(), text)) {
    problem = std::strerror(errno);
    file.reset();
  }
  if (file && !text.empty()) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string time_text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = ::environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// Creates a pipe whose reading end is `reading`. Empty, with errno, on failure.
FileDescriptor writing_end(asio::readable_pipe& reading) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  reading.assign(ends[0]);
  return FileDescriptor(ends[1]);
}

// Kills a child and its group. The child must not be reaped yet, so that its pid is still its own.
void kill_all(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // in case it has left its group
  reap_within(pid, kGoneWithin);
}

}  // namespace

class Children::Child : public std::enable_shared_from_this<Children::Child> {
 public:
  Child(asio::io_context& loop, ChildCommand command, std::function<void(ChildAnswer)> done)
      : loop_(loop),
        command_(std::move(command)),
        done_(std::move(done)),
        output_(loop, answer_.output),
        errors_(loop, answer_.errors),
        timer_(loop),
        end_(loop) {}

  // `over` removes this child from the list.
  void start(std::function<void()> over) {
    over_ = std::move(over);
    const std::string problem = launch();
    if (!problem.empty()) {
      answer_.problem = "cannot be started: " + problem;
      asio::post(loop_, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->finish();
      });
      return;
    }
    read(output_);
    read(errors_);
    end_.watch(pid_, [this] { ended(); });
    call_after(command_.time_limit, [](Child& self) {
      self.stop(ChildAnswer::Ending::timed_out,
                "did not finish within " + time_text(self.command_.time_limit));
    });
  }

  ~Child() {
    if (alive_) kill_all(pid_);
  }

 private:
  struct Stream {
    Stream(asio::io_context& loop, std::string& captured) : pipe(loop), text(captured) {}
    asio::readable_pipe pipe;
    std::string& text;
    std::array<char, 65536> part;
  };

  // Returns an error text, or an empty string on success.
  std::string launch() {
    std::string problem;
    const FileDescriptor input = input_of(command_.input, problem);
    if (!input) return problem;
    ProcessStart start;
    start.program = command_.program;
    start.arguments = command_.arguments;
    start.environment = command_.environment ? *command_.environment : current_environment();
    start.dies_with_parent = true;
    const FileDescriptor output = writing_end(output_.pipe);
    const FileDescriptor errors = output ? writing_end(errors_.pipe) : FileDescriptor();
    if (!errors) return std::strerror(errno);
    start.input = input.get();
    start.output = output.get();
    start.errors = errors.get();
    const StartedProcess started = start_process(start);
    if (started.error != 0) return std::strerror(started.error);
    pid_ = started.pid;
    alive_ = true;
    open_ = 3;
    return {};
  }

  void read(Stream& stream) {
    stream.pipe.async_read_some(asio::buffer(stream.part),
                                [weak = weak_from_this(), &stream](
                                    const boost::system::error_code& error, std::size_t size) {
                                  const auto self = weak.lock();
                                  if (!self || error == asio::error::operation_aborted) return;
                                  self->took(stream, size, !error);
                                });
  }

  void took(Stream& stream, std::size_t size, bool more) {
    const std::size_t room = command_.output_limit - stream.text.size();
    stream.text.append(stream.part.data(), std::min(size, room));
    if (size > room) {
      stop(ChildAnswer::Ending::too_much,
           fmt::format("printed more than {} bytes", command_.output_limit));
    } else if (more) {
      read(stream);
    } else {
      part_over();
    }
  }

  void ended() {
    alive_ = false;
    // Kills the processes left in its group. The group's number cannot be reused before the child
    // is reaped.
    ::kill(-pid_, SIGKILL);
    int status = 0;
    const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) reap_within(pid_, {});  // a debugger traces it
    if (reaped != pid_) {
      answer_.ending = ChildAnswer::Ending::unknown;
      answer_.problem = fmt::format("ended in an unknown way: {}",
                                    reaped == 0 ? "it is being traced" : std::strerror(errno));
    } else if (WIFEXITED(status)) {
      answer_.ending = ChildAnswer::Ending::exited;
      answer_.exit_code = WEXITSTATUS(status);
      if (answer_.exit_code != 0) {
        answer_.problem = fmt::format("ended with exit code {}", answer_.exit_code);
      }
    } else {
      answer_.ending = ChildAnswer::Ending::signalled;
      answer_.problem = fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                                    ::strsignal(WTERMSIG(status)));
    }
    call_after(kReadOn, [](Child& self) { self.finish(); });
    part_over();
  }

  void part_over() {
    if (--open_ == 0) finish();
  }

  // Kills the child for exceeding a limit.
  void stop(ChildAnswer::Ending why, std::string problem) {
    answer_.ending = why;
    answer_.exit_code = -1;
    answer_.problem = std::move(problem);
    if (std::exchange(alive_, false)) kill_all(pid_);
    finish();
  }

  // Replaces the previously scheduled call.
  void call_after(std::chrono::milliseconds time, void (*call)(Child&)) {
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this(), call,
                       turn = ++turn_](const boost::system::error_code& cancelled) {
      const auto self = weak.lock();
      // A timer that had already expired is not cancelled by a later call.
      if (self && !cancelled && turn == self->turn_) call(*self);
    });
  }

  // Must be the last call: it destroys this object.
  void finish() {
    if (!over_) return;
    timer_.cancel();
    const auto over = std::exchange(over_, nullptr);
    const auto done = std::exchange(done_, nullptr);
    ChildAnswer answer = std::move(answer_);
    over();
    done(std::move(answer));
  }

  asio::io_context& loop_;
  const ChildCommand command_;
  std::function<void(ChildAnswer)> done_;
  std::function<void()> over_;
  ChildAnswer answer_;
  Stream output_;
  Stream errors_;
  asio::steady_timer timer_;
  std::uint64_t turn_ = 0;  // number of calls of call_after
  ProcessEnd end_;
  pid_t pid_ = -1;
  int open_ = 0;        // open outputs, plus 1 until the process ends
  bool alive_ = false;  // started and not reaped
};

Children::Children(asio::io_context& loop) : loop_(loop) {}
Children::~Children() = default;

void Children::run(ChildCommand command, std::function<void(ChildAnswer)> done) {
  running_.push_back(std::make_shared<Child>(loop_, std::move(command), std::move(done)));
  const auto place = std::prev(running_.end());
  (*place)->start([this, place] { running_.erase(place); });
}

ChildAnswer run_child(ChildCommand command) {
  asio::io_context loop;
  Children children(loop);
  ChildAnswer answer;
  children.run(std::move(command), [&](ChildAnswer result) { answer = std::move(result); });
  loop.run();
  return answer;
}

}  // namespace petlab::base
