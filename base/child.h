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

/// A program that is asked something: what it is started with, and what its answer may take.
struct ChildCommand {
  std::string program;                 // its file
  std::vector<std::string> arguments;  // behind the program's name
  std::chrono::milliseconds time_limit = std::chrono::minutes(1);
  std::size_t output_limit = std::size_t{1} << 20;  // bytes, of its output and of its errors each
  std::string input;                                // all that there is on its standard input
  /// "NAME=VALUE"; std::nullopt: what this process has.
  std::optional<std::vector<std::string>> environment;
};

/// What a child printed, and how it ended.
struct ChildAnswer {
  enum class Ending {
    exited,
    signalled,    ///< a signal that is not ours ended it
    timed_out,    ///< killed at its time limit
    too_much,     ///< killed when it printed more than its limit
    not_started,  ///< the program is not there, cannot be executed, or no process can be made
    unknown,      ///< it ended unseen: this process was started with SIGCHLD ignored
  };
  Ending ending = Ending::not_started;
  int exit_code = -1;  // -1: all but `exited`
  /// What is wrong, to stand behind the program's name: "ended with exit code 3", "was ended by
  /// signal 11 (Segmentation fault)", "gave no answer within 60 s", "printed more than 1048576
  /// bytes", "cannot be started: No such file or directory". Empty: it ended with exit code 0.
  std::string problem;
  std::string output;  // no longer than the limit, as are its errors
  std::string errors;

  bool timed_out() const { return ending == Ending::timed_out; }
};

/// Runs programs beside a loop, several at once, and gives their answers. Each child
/// - has a group of its own, so that it does not get the terminal's Ctrl-C, and what it leaves in
///   that group is killed when it ends or is over its limits;
/// - has a standard input that ends behind `input`, both outputs captured, no other open file of
///   this process, no blocked signal, and SIGPIPE as programs expect it;
/// - is killed when the thread that started it ends.
/// What a child started outside of its group and left with its outputs open is not waited for, and
/// neither is a child that SIGKILL does not end, as one that a driver holds: it is reaped later.
class Children {
 public:
  explicit Children(boost::asio::io_context& loop);
  /// Kills what still runs; its `done` is not called.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// `done` is called from the loop, once, never from inside.
  void run(ChildCommand command, std::function<void(ChildAnswer)> done);

 private:
  class Child;
  boost::asio::io_context& loop_;
  std::list<std::shared_ptr<Child>> running_;
};

/// Runs one and waits for its answer.
ChildAnswer run_child(ChildCommand command);

}  // namespace petlab::base
