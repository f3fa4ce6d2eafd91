#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace petlab::orchestrator {

/// How a worker is started: a program, and what stands on its command line before what petlab adds
/// (`-`, an attempt's folder, `--describe`).
struct WorkerCommand {
  WorkerCommand() = default;
  WorkerCommand(std::filesystem::path its_program, std::vector<std::string> its_arguments = {})
      : program(std::move(its_program)), arguments(std::move(its_arguments)) {}

  bool empty() const { return program.empty(); }
  /// The command line that ends with these words, the program left out.
  std::vector<std::string> arguments_and(const std::string& last) const;
  /// As the user would type it, for messages.
  std::string text() const;
  /// The program that may look at files before the first trial (docs/reference/worker-protocol.md);
  /// empty where the worker is a program with arguments, such as an interpreter, which has none.
  std::filesystem::path check_program() const;

  std::filesystem::path program;  // absolute
  std::vector<std::string> arguments;
};

/// Finds the worker that a user named: a program's path, relative to the current folder where it
/// has a slash, else its name on `search_path` (like PATH); or such a program with arguments,
/// `python3 worker.py`, in words as a POSIX shell divides them (quotes, backslashes; nothing is
/// expanded). An argument that names a file is made absolute: a worker may be started in another
/// folder. Throws std::invalid_argument where the program is not there or may not be executed, and
/// for a quote that nothing ends.
WorkerCommand find_worker(const std::string& named, const std::string& search_path);

}  // namespace petlab::orchestrator
