#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

namespace CLI {
class App;
}

namespace petlab::cli {

/// Where a subcommand writes; arguments so that tests can read it.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

/// Exit codes of every command (docs/reference/errors.md).
enum ExitCode { kDone = 0, kSomeFailed = 1, kUsage = 2, kInterrupted = 3 };

/// A row of the table of subcommands (cli/command_line.h); one file a subcommand.
struct Subcommand {
  std::string_view name;
  std::string_view group;  // under which the program's help lists it; rows of a group are together
  std::string_view help;
  /// Adds the options to `app` and returns what runs after the command line was parsed; that
  /// function's result is the exit code. It throws std::invalid_argument for what the user wrote
  /// (exit code 2) and std::runtime_error for files, database and processes (exit code 1).
  std::function<int()> (*make)(CLI::App& app, Streams streams);
  bool tells_of_others = false;  // and needs their options
};

}  // namespace petlab::cli
