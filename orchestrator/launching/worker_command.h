#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace petlab::orchestrator {

/// The command that starts a worker: a program and its first arguments. petlab appends `-`, an
/// attempt's folder or `--describe`.
struct WorkerCommand {
  WorkerCommand() = default;
  WorkerCommand(std::filesystem::path file, std::vector<std::string> first_arguments = {})
      : program(std::move(file)), arguments(std::move(first_arguments)) {}

  bool empty() const { return program.empty(); }
  /// The arguments, followed by `last`.
  std::vector<std::string> arguments_and(const std::string& last) const;
  /// The command as the user would type it, for messages.
  std::string text() const;
  /// The program that checks files before the first trial (docs/reference/worker-protocol.md).
  /// Empty if the worker is a program with arguments, such as an interpreter, which has none.
  std::filesystem::path check_program() const;

  std::filesystem::path program;  // absolute
  std::vector<std::string> arguments;
};

/// Finds the worker that a user named: a program's path, relative to the current folder, if it
/// contains a slash, otherwise its name on `search_path` (like PATH). Arguments may follow, as in
/// `python3 worker.py`; words are split as by a POSIX shell (quotes, backslashes; nothing is
/// expanded). An argument that names a file is made absolute, since a worker may be started in
/// another folder. Throws std::invalid_argument if the program is missing or not executable, or if
/// a quote is not closed.
WorkerCommand find_worker(const std::string& named, const std::string& search_path);

}  // namespace petlab::orchestrator
