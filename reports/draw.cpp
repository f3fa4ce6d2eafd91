#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <utility>

#include "base/child.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "reports/builtin.h"
#include "reports/error.h"
#include "reports/text.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

constexpr std::uintmax_t kLargestPicture = std::uintmax_t{256} << 20;

// Generous: a figure takes a few seconds, and a page may have dozens.
constexpr auto kDrawnWithin = std::chrono::minutes(10);

std::string last_line(const base::ChildAnswer& answer) {
  const std::vector<std::string> lines =
      printable_lines(answer.errors.empty() ? answer.output : answer.errors);
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
  base::ChildCommand command;
  command.program = python.string();
  // -I: imports must not depend on the user's environment or the current folder.
  command.arguments = {"-I", script.string()};
  command.time_limit = kDrawnWithin;
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::filesystem::path file = workshop.path() / fmt::format("{}.vl.json", i);
    base::write_file_atomically(file, drawings[i].specification);
    command.arguments.push_back(drawings[i].kind);
    command.arguments.push_back(file.string());
    command.arguments.push_back(
        (workshop.path() / fmt::format("{}.{}", i, drawings[i].kind)).string());
  }
  const base::ChildAnswer answer = base::run_child(std::move(command));
  if (!answer.problem.empty()) {
    throw NotDrawn(fmt::format("{}: drawing a figure {}: {}", python.string(), answer.problem,
                               last_line(answer)));
  }
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    pictures.push_back(base::read_file(workshop.path() / fmt::format("{}.{}", i, drawings[i].kind),
                                       kLargestPicture));
  }
  return pictures;
}

}  // namespace petlab::reports
