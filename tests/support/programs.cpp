#include "tests/support/programs.h"

#include <sys/wait.h>

#include <cstdlib>

#include "tests/support/temp_dir.h"

namespace petlab::testing {

std::filesystem::path program(const std::string& name) {
  return std::filesystem::path(PETLAB_BIN_DIR) / name;
}

std::filesystem::path source_dir() { return PETLAB_SOURCE_DIR; }

CommandResult run_command(const std::string& command) {
  const TempDir dir;
  const std::string full = "( " + command + "\n) >'" + (dir.path() / "out").string() + "' 2>'" +
                           (dir.path() / "err").string() + "'";
  const int status = std::system(full.c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(dir.path() / "out");
  result.err = read_file(dir.path() / "err");
  return result;
}

}  // namespace petlab::testing
