#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "reports/builtin.h"
#include "reports/error.h"
#include "reports/text.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

constexpr std::uintmax_t kLargestPicture = std::uintmax_t{256} << 20;

// Runs the program, its outputs in `log`, and waits; its exit code, 128 + signal, or -1 and errno.
int run_and_wait(const std::vector<std::string>& command, const std::filesystem::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string last_line(const std::filesystem::path& log) {
  std::vector<std::string> lines;
  try {
    lines = printable_lines(base::read_file(log, kLargestPicture));
  } catch (const base::Error&) {
    // It said nothing.
  }
  return lines.empty() ? "no message" : lines.back();
}

}  // namespace

std::filesystem::path figure_tools(const std::filesystem::path& home) { return home / "figures"; }

std::vector<std::string> draw(const std::vector<Drawing>& drawings,
                              const std::filesystem::path& home) {
  std::vector<std::string> pictures;
  if (drawings.empty()) return pictures;
  const std::filesystem::path python = figure_tools(home) / "bin/python3";
  if (::access(python.c_str(), X_OK) != 0) {
    throw NotDrawn(fmt::format(
        "{}: not there, and SVG, PDF and PNG are drawn by it; scripts/setup.sh puts it in place "
        "(a specification, which other tools draw, comes with --format vega)",
        python.string()));
  }
  const base::TemporaryFolder workshop("petlab-draw");
  const std::filesystem::path script = workshop.path() / "draw.py";
  base::write_file_atomically(script, builtin_file("draw.py"));
  // -I: neither the user's environment nor the current folder decides what is imported.
  std::vector<std::string> command = {python.string(), "-I", script.string()};
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::filesystem::path file = workshop.path() / fmt::format("{}.vl.json", i);
    base::write_file_atomically(file, drawings[i].specification);
    command.push_back(drawings[i].kind);
    command.push_back(file.string());
    command.push_back((workshop.path() / fmt::format("{}.{}", i, drawings[i].kind)).string());
  }
  const std::filesystem::path log = workshop.path() / "log.txt";
  const int code = run_and_wait(command, log);
  if (code != 0) {
    throw NotDrawn(fmt::format(
        "{}: drawing a figure {}: {}", python.string(),
        code < 0 ? std::string(std::strerror(errno)) : fmt::format("ended with exit code {}", code),
        last_line(log)));
  }
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    pictures.push_back(base::read_file(workshop.path() / fmt::format("{}.{}", i, drawings[i].kind),
                                       kLargestPicture));
  }
  return pictures;
}

}  // namespace petlab::reports
