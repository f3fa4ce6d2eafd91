#include "orchestrator/fault_point.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace petlab::orchestrator {
namespace {

// One process, one thread passes fault points: the run's own.
struct Armed {
  std::string name;
  std::int64_t left = 0;
};
Armed armed;

}  // namespace

void arm_fault_point(std::string_view text) {
  armed = {};
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  std::int64_t count = 0;
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end) count = 0;
  }
  if (colon == 0 || count < 1) {
    throw std::invalid_argument(
        fmt::format("{} is '{}', must be NAME:COUNT with COUNT >= 1", kFaultPointVariable, text));
  }
  const std::string_view name = text.substr(0, colon);
  if (name != "any" && !is_fault_point(name)) {
    throw std::invalid_argument(fmt::format(
        "{} is '{}': there is no fault point {}, must be any or one of {}, {}", kFaultPointVariable,
        text, name, fmt::join(kFaultPoints, ", "), fmt::join(kSlurmFaultPoints, ", ")));
  }
  armed = {std::string(text.substr(0, colon)), count};
}

void fault_point(FaultPointName point) {
  const std::string_view name = point.text();
  if (armed.left == 0 || (armed.name != name && armed.name != "any")) return;
  if (--armed.left > 0) return;
  // Said first, so that a campaign knows where it was.
  const std::string line = fmt::format("fault point {}\n", name);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  ::kill(::getpid(), SIGKILL);
}

}  // namespace petlab::orchestrator
