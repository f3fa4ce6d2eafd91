#include "base/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/file_descriptor.h"
#include "base/signals.h"

namespace petlab::base {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

// For what an ended child printed last to be read, where others hold its outputs open.
constexpr auto kReadOn = std::chrono::seconds(1);
// Milliseconds; a process that SIGKILL ends is gone by then.
constexpr int kGoneWithin = 100;

// Runs in the child between fork and exec: only async-signal-safe calls.
struct ChildSetup {
  pid_t parent = ::getpid();

  template <typename ChildLauncher>
  process::error_code on_exec_setup(ChildLauncher&, const process::filesystem::path&,
                                    const char* const*&) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before that call
    // Boost 1.81 means to close them, and leaves those below its own pipe open.
    ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    reset_signals();
    return {};
  }
  // Boost 1.81 would run the parent's exit handlers in the child.
  template <typename... Any>
  void on_exec_error(Any&&...) const {
    ::_exit(127);
  }
};

// Not a pipe: writing to one whose reader has ended is a signal, and it fills up.
FileDescriptor input_of(const std::string& text, std::string& problem) {
  FileDescriptor file(text.empty() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC)
                                   : ::memfd_create("petlab-input", MFD_CLOEXEC));
  if (!file) problem = std::strerror(errno);
  for (std::size_t at = 0; file && at < text.size();) {
    const ssize_t wrote = ::write(file.get(), text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      problem = std::strerror(errno);
      file.reset();
    } else {
      at += static_cast<std::size_t>(wrote);
    }
  }
  if (file && !text.empty()) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string time_text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

// Children that were killed and are not gone yet.
class Lingering {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }
  void reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

Lingering& lingering() {
  static Lingering all;
  return all;
}

// Ends a child that nobody has waited for, with its group: its number is its own until then.
void kill_all(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // it may have left its group
  for (int tries = 0; tries < kGoneWithin; ++tries) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return;
    ::usleep(1000);
  }
  lingering().add(pid);
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

  // `over` takes it out of the list.
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
    end_.async_wait(asio::posix::stream_descriptor::wait_read,
                    [weak = weak_from_this()](const boost::system::error_code& error) {
                      const auto self = weak.lock();
                      if (self && !error) self->ended();
                    });
    call_after(command_.time_limit, [](Child& self) {
      self.stop(ChildAnswer::Ending::timed_out,
                "gave no answer within " + time_text(self.command_.time_limit));
    });
  }

  ~Child() {
    if (alive_) kill_all(pid_);
  }

 private:
  struct Stream {
    Stream(asio::io_context& loop, std::string& its_text) : pipe(loop), text(its_text) {}
    asio::readable_pipe pipe;
    std::string& text;
    std::array<char, 65536> part;
  };

  // Why it could not be; empty: it was.
  std::string launch() {
    std::string problem;
    const FileDescriptor input = input_of(command_.input, problem);
    if (!input) return problem;
    std::vector<const char*> environment;
    process::posix::default_launcher launcher;
    if (command_.environment) {
      for (const std::string& entry : *command_.environment) environment.push_back(entry.c_str());
      environment.push_back(nullptr);
      launcher.env = environment.data();
    }
    process::error_code error;
    // Boost 1.81 waits for no child that could not be executed or watched.
    const auto give_up = [&launcher](std::string why) {
      if (launcher.pid > 0 && ::waitpid(launcher.pid, nullptr, WNOHANG) == 0) {
        kill_all(launcher.pid);
      }
      return why;
    };
    const SignalsHeldBack held_back;
    try {
      // Let go of at once: Boost reaps a child before it tells of its end, and its group could not
      // be killed by number any more; and it waits without end for one that is traced.
      launcher(output_.pipe.get_executor(), error, process::filesystem::path(command_.program),
               command_.arguments, ChildSetup{},
               process::process_stdio{input.get(), output_.pipe, errors_.pipe})
          .detach();
      if (error) return give_up(error.message());
      FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, launcher.pid, 0)));
      if (!end) return give_up(std::strerror(errno));
      end_.assign(end.get());
      end.release();
    } catch (const std::exception& failed) {
      return give_up(failed.what());
    }
    pid_ = launcher.pid;
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
    // What it left in its group, whose number is nobody else's while the child is not waited for.
    ::kill(-pid_, SIGKILL);
    int status = 0;
    const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) lingering().add(pid_);  // a tracer has it
    if (reaped != pid_) {
      answer_.ending = ChildAnswer::Ending::unknown;
      answer_.problem = fmt::format("ended, and how is not known: {}",
                                    reaped == 0 ? "it is traced" : std::strerror(errno));
    } else if (WIFEXITED(status)) {
      answer_.ending = ChildAnswer::Ending::exited;
      answer_.exit_code = WEXITSTATUS(status);
      if (answer_.exit_code != 0) {
        answer_.problem = fmt::format("ended with exit code {}", answer_.exit_code);
      }
    } else {
      answer_.ending = ChildAnswer::Ending::signalled;
      answer_.problem = fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                    ::strsignal(WTERMSIG(status)));
    }
    call_after(kReadOn, [](Child& self) { self.finish(); });
    part_over();
  }

  void part_over() {
    if (--open_ == 0) finish();
  }

  // It is over a limit.
  void stop(ChildAnswer::Ending why, std::string problem) {
    answer_.ending = why;
    answer_.exit_code = -1;
    answer_.problem = std::move(problem);
    if (std::exchange(alive_, false)) kill_all(pid_);
    finish();
  }

  // Instead of what was to be called before.
  void call_after(std::chrono::milliseconds time, void (*call)(Child&)) {
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this(), call,
                       turn = ++turn_](const boost::system::error_code& cancelled) {
      const auto self = weak.lock();
      // One that was due already is not cancelled by a later call.
      if (self && !cancelled && turn == self->turn_) call(*self);
    });
  }

  // The last call: nothing of it may be used afterwards.
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
  std::uint64_t turn_ = 0;              // calls of call_after
  asio::posix::stream_descriptor end_;  // a pidfd
  pid_t pid_ = -1;
  int open_ = 0;        // of both outputs and the process
  bool alive_ = false;  // started, and not waited for
};

Children::Children(asio::io_context& loop) : loop_(loop) {}
Children::~Children() = default;

void Children::run(ChildCommand command, std::function<void(ChildAnswer)> done) {
  lingering().reap();
  running_.push_back(std::make_shared<Child>(loop_, std::move(command), std::move(done)));
  const auto place = std::prev(running_.end());
  (*place)->start([this, place] { running_.erase(place); });
}

ChildAnswer run_child(ChildCommand command) {
  asio::io_context loop;
  Children children(loop);
  ChildAnswer answer;
  children.run(std::move(command), [&](ChildAnswer its) { answer = std::move(its); });
  loop.run();
  return answer;
}

}  // namespace petlab::base
