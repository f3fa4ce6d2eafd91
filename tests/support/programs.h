#pragma once

#include <filesystem>
#include <string>

namespace petlab::testing {

/// The path of a program of this build (`petlab`, `petlab-trainer`, a test's helper).
std::filesystem::path program(const std::string& name);

/// The root of the source tree, for files that tests share with users (sweeps/quickstart.yaml).
std::filesystem::path source_dir();

/// The result of a command.
struct CommandResult {
  int exit_code = 0;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;
};

/// Runs a shell command, waits for it and captures both outputs.
CommandResult run_command(const std::string& command);

}  // namespace petlab::testing
