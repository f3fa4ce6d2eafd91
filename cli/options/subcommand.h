#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

namespace CLI {
class App;
}

namespace petlab::cli {

/// Input and output of a subcommand. Passed as arguments so that tests can read them.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

/// Exit codes of every command (docs/reference/errors.md).
enum ExitCode { kDone = 0, kSomeFailed = 1, kUsage = 2, kInterrupted = 3 };

/// A row of the table of subcommands (cli/command_line.h). Each subcommand has its own file.
struct Subcommand {
  std::string_view name;
  std::string_view group;  // its section in the program's help; rows of a group are adjacent
  std::string_view help;
  /// Adds the options to `app` and returns the function to run after the command line was parsed;
  /// its result is the exit code. The function throws std::invalid_argument for user errors (exit
  /// code 2) and std::runtime_error for files, database and processes (exit code 1).
  std::function<int()> (*make)(CLI::App& app, Streams streams);
  bool describes_others = false;  // it describes other commands and needs their options
};

}  // namespace petlab::cli
