#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace petlab::base {

/// A program to run, its input, and its limits.
struct ChildCommand {
  std::string program;                 // path of the program
  std::vector<std::string> arguments;  // after the program's name
  std::chrono::milliseconds time_limit = std::chrono::minutes(1);
  std::size_t output_limit = std::size_t{1} << 20;  // bytes, for each of output and errors
  std::string input;                                // the whole standard input
  /// "NAME=VALUE"; std::nullopt: the environment of this process.
  std::optional<std::vector<std::string>> environment;
};

/// The output of a child, and how it ended.
struct ChildAnswer {
  enum class Ending {
    exited,
    signalled,    ///< killed by a signal of another process
    timed_out,    ///< killed at its time limit
    too_much,     ///< killed when it exceeded its output limit
    not_started,  ///< the program is missing or not executable, or no process can be created
    unknown,      ///< its end was not observed: this process was started with SIGCHLD ignored
  };
  Ending ending = Ending::not_started;
  int exit_code = -1;  // -1 unless `exited`
  /// What went wrong, to be appended to the program's name: "ended with exit code 3", "was killed
  /// by signal 11 (Segmentation fault)", "did not finish within 60 s", "printed more than 1048576
  /// bytes", "cannot be started: No such file or directory". Empty if it ended with exit code 0.
  std::string problem;
  std::string output;  // at most the output limit; likewise for errors
  std::string errors;

  bool timed_out() const { return ending == Ending::timed_out; }
};

/// Runs programs in parallel from an event loop and captures their output. Each child
/// - is in a separate process group, so that it does not receive the terminal's Ctrl-C. Processes
///   left in that group are killed when the child ends or exceeds a limit;
/// - gets `input` as its standard input, with both outputs captured, no other open file of this
///   process, no blocked signal, and the default action for SIGPIPE;
/// - is killed when the thread that started it ends.
/// Neither waits for processes outside of the group that keep the outputs open, nor for a child
/// that survives SIGKILL, for example in a device driver. Such a child is reaped later.
class Children {
 public:
  explicit Children(boost::asio::io_context& loop);
  /// Kills all running children without calling their `done`.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Calls `done` once from the loop, never from inside run().
  void run(ChildCommand command, std::function<void(ChildAnswer)> done);

 private:
  class Child;
  boost::asio::io_context& loop_;
  std::list<std::shared_ptr<Child>> running_;
};

/// Runs a program and waits for its answer.
ChildAnswer run_child(ChildCommand command);

}  // namespace petlab::base
