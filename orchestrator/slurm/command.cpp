#include "orchestrator/slurm/command.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <memory>
#include <string_view>
#include <utility>

#include "base/programs.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

// Runs in the child between fork and exec: only async-signal-safe calls.
struct ChildSetup {
  template <typename ChildLauncher>
  process::error_code on_exec_setup(ChildLauncher&, const process::filesystem::path&,
                                    const char* const*&) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    return {};
  }
  // Boost 1.81 would run the parent's exit handlers in the child.
  template <typename... Any>
  void on_exec_error(Any&&...) const {
    ::_exit(127);
  }
};

bool changes_answers(std::string_view entry) {
  for (const std::string_view prefix : {"SQUEUE_", "SCANCEL_", "SACCT_", "SCONTROL_", "SBATCH_WAIT",
                                        "SBATCH_TEST_ONLY", "SBATCH_ARRAY_INX", "SBATCH_JOB_NAME",
                                        "SLURM_JOB_NAME=", "SLURM_CLUSTERS=", "SBATCH_CLUSTERS="}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_without_surprises() {
  std::vector<std::string> kept;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!changes_answers(*entry)) kept.emplace_back(*entry);
  }
  return kept;
}

}  // namespace

class SlurmCommands::Running : public std::enable_shared_from_this<SlurmCommands::Running> {
 public:
  Running(asio::io_context& loop, std::function<void(SlurmAnswer)> done)
      : done_(std::move(done)), output_(loop), errors_(loop), limit_(loop), process_(loop) {}

  // `over` takes it out of the list.
  void start(const std::string& program, const std::vector<std::string>& words,
             std::chrono::milliseconds limit, std::function<void()> over) {
    over_ = std::move(over);
    const std::vector<std::string> environment = environment_without_surprises();
    std::vector<const char*> pointers;
    for (const std::string& entry : environment) pointers.push_back(entry.c_str());
    pointers.push_back(nullptr);
    process::posix::default_launcher launcher;
    launcher.env = pointers.data();
    process::error_code error;
    process_ = launcher(output_.get_executor(), error, process::filesystem::path(program),
                        std::vector<std::string>(words.begin() + 1, words.end()), ChildSetup{},
                        process::process_stdio{nullptr, output_, errors_});
    if (error) {
      answer_.errors = fmt::format("{}: cannot be started: {}", words.front(), error.message());
      waiting_ = 1;
      asio::post(output_.get_executor(), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->part_done();
      });
      return;
    }
    started_ = true;
    waiting_ = 3;
    read(output_, answer_.output);
    read(errors_, answer_.errors);
    process_.async_wait([weak = weak_from_this()](process::error_code failed, int) {
      const auto self = weak.lock();
      if (!self || failed == asio::error::operation_aborted) return;
      const int status = self->process_.native_exit_code();
      if (!failed && WIFEXITED(status)) self->answer_.exit_code = WEXITSTATUS(status);
      self->started_ = false;
      self->part_done();
    });
    limit_.expires_after(limit);
    limit_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
      const auto self = weak.lock();
      if (!self || cancelled || !self->started_) return;
      self->answer_.timed_out = true;
      ::kill(-self->process_.id(), SIGKILL);
    });
  }

  ~Running() {
    if (!started_) return;
    ::kill(-process_.id(), SIGKILL);
    process::error_code ignored;
    process_.terminate(ignored);  // reaps
  }

 private:
  void read(asio::readable_pipe& pipe, std::string& into) {
    asio::async_read(
        pipe, asio::dynamic_buffer(into),
        [weak = weak_from_this()](const boost::system::error_code& error, std::size_t) {
          const auto self = weak.lock();
          if (!self || error == asio::error::operation_aborted) return;
          self->part_done();
        });
  }
  void part_done() {
    if (--waiting_ > 0) return;
    limit_.cancel();
    const auto done = std::move(done_);
    SlurmAnswer answer = std::move(answer_);
    if (answer.timed_out) answer.exit_code = -1;
    over_();
    done(std::move(answer));
  }

  std::function<void(SlurmAnswer)> done_;
  std::function<void()> over_;
  asio::readable_pipe output_;
  asio::readable_pipe errors_;
  asio::steady_timer limit_;
  process::basic_process<asio::any_io_executor> process_;
  SlurmAnswer answer_;
  int waiting_ = 0;
  bool started_ = false;
};

struct SlurmCommands::Impl {
  explicit Impl(asio::io_context& its) : loop(its) {}
  asio::io_context& loop;
  std::list<std::shared_ptr<Running>> running;
};

SlurmCommands::SlurmCommands(asio::io_context& loop) : impl_(std::make_unique<Impl>(loop)) {}
SlurmCommands::~SlurmCommands() = default;

void SlurmCommands::run(std::vector<std::string> words, std::chrono::milliseconds limit,
                        std::function<void(SlurmAnswer)> done) {
  const char* search_path = std::getenv("PATH");
  const std::string program = base::find_program(words.front(), search_path ? search_path : "");
  impl_->running.push_back(std::make_shared<Running>(impl_->loop, std::move(done)));
  const auto place = std::prev(impl_->running.end());
  (*place)->start(program.empty() ? words.front() : program, words, limit,
                  [impl = impl_.get(), place] { impl->running.erase(place); });
}

}  // namespace petlab::orchestrator
