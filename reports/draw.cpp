#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/child.h"
#include "base/error.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/tools_python.h"
#include "base/trimmed.h"
#include "reports/builtin.h"
#include "reports/error.h"
#include "reports/text.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

constexpr std::uintmax_t kLargestPicture = std::uintmax_t{256} << 20;
constexpr std::uintmax_t kLargestScript = std::uintmax_t{16} << 20;

// Generous: a figure takes a few seconds, and a page may have dozens.
constexpr auto kDrawnWithin = std::chrono::minutes(10);

// The exit code of draw.py if vl-convert is not installed.
constexpr int kNotInstalled = 69;

// The Python of the tools or its package vl-convert is not installed.
struct ToolMissing : NotDrawn {
  using NotDrawn::NotDrawn;
};

std::string last_line(const base::ChildAnswer& answer) {
  const std::vector<std::string> lines =
      printable_lines(answer.errors.empty() ? answer.output : answer.errors);
  return lines.empty() ? "no message" : lines.back();
}

// Runs draw.py in the folder `workshop` and returns its output. Throws NotDrawn.
std::string run_draw(const std::filesystem::path& home, const std::filesystem::path& workshop,
                     const std::vector<std::string>& words) {
  const base::ToolsPython python = base::tools_python(home);
  if (const std::string problem = python.problem(); !problem.empty()) throw ToolMissing(problem);
  const std::filesystem::path script = workshop / "draw.py";
  base::write_file_atomically(script, builtin_file("draw.py"));
  base::ChildCommand command;
  command.program = python.program.string();
  command.arguments = python.arguments(script, words);
  command.time_limit = kDrawnWithin;
  base::ChildAnswer answer = base::run_child(std::move(command));
  if (answer.exit_code == kNotInstalled) {
    throw ToolMissing(fmt::format("vl-convert-python is missing; {}",
                                  python.how_to_install("vl-convert-python")));
  }
  if (!answer.problem.empty()) {
    throw NotDrawn(fmt::format("{}: drawing a figure {}: {}", python.program.string(),
                               answer.problem, last_line(answer)));
  }
  return std::move(answer.output);
}

// Returns the page's script from the cache, else creates it and keeps it there.
std::string cached_script(const std::filesystem::path& home) {
  const base::TemporaryFolder workshop("petlab-draw");
  const std::filesystem::path cache = home / "cache";
  const std::filesystem::path created = workshop.path() / "page-script.js";
  const std::string printed =
      run_draw(home, workshop.path(), {"page-script", cache.string(), created.string()});
  const std::filesystem::path cached = cache / base::trimmed(printed);
  const std::optional<std::string> text = base::read_file_if_any(created, kLargestScript);
  if (!text) return base::read_file(cached, kLargestScript);
  try {
    // Without a home, the path would be in the current folder.
    if (!home.empty()) {
      std::filesystem::create_directories(cache);
      base::write_file_atomically(cached, *text);
    }
  } catch (const base::Error&) {
    // A home that cannot be written costs the next page the two seconds of creating it.
  } catch (const std::filesystem::filesystem_error&) {
  }
  return *text;
}

}  // namespace

std::vector<std::string> draw(const std::vector<Drawing>& drawings,
                              const std::filesystem::path& home) {
  std::vector<std::string> pictures;
  if (drawings.empty()) return pictures;
  const base::TemporaryFolder workshop("petlab-draw");
  std::vector<std::string> words = {"pictures"};
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::filesystem::path file = workshop.path() / fmt::format("{}.vl.json", i);
    base::write_file_atomically(file, drawings[i].specification);
    words.push_back(drawings[i].kind);
    words.push_back(file.string());
    words.push_back((workshop.path() / fmt::format("{}.{}", i, drawings[i].kind)).string());
  }
  try {
    run_draw(home, workshop.path(), words);
  } catch (const ToolMissing& error) {
    throw NotDrawn(
        fmt::format("SVG, PDF and PNG are not drawn: {} (--format vega writes the specification, "
                    "which other tools draw)",
                    error.what()));
  }
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    pictures.push_back(base::read_file(workshop.path() / fmt::format("{}.{}", i, drawings[i].kind),
                                       kLargestPicture));
  }
  return pictures;
}

const PageScript& page_script(const std::filesystem::path& home) {
  // `petlab serve` creates its page again whenever a trial reports, and asking Python for the
  // script's version takes a tenth of a second.
  static std::mutex mutex;
  static std::map<std::filesystem::path, PageScript> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(home);
  if (is_new) {
    try {
      entry->second.text = cached_script(home);
    } catch (const std::exception& error) {
      entry->second.missing = error.what();
    }
  }
  return entry->second;
}

}  // namespace petlab::reports
