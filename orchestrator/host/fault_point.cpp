#include "orchestrator/host/fault_point.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace petlab::orchestrator {
namespace {

// Only the run's thread passes fault points, so this needs no lock.
struct Armed {
  std::string name;
  std::int64_t left = 0;
  bool stop = false;
};
Armed armed;

}  // namespace

void arm_fault_point(std::string_view text) {
  armed = {};
  if (text.empty()) return;
  constexpr std::string_view kStop = ":stop";
  const bool stop = text.ends_with(kStop);
  const std::string_view rest = text.substr(0, text.size() - (stop ? kStop.size() : 0));
  const std::size_t colon = rest.find(':');
  std::int64_t count = 0;
  if (colon != std::string_view::npos) {
    const char* end = rest.data() + rest.size();
    const auto parsed = std::from_chars(rest.data() + colon + 1, end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end) count = 0;
  }
  if (colon == 0 || count < 1) {
    throw std::invalid_argument(
        fmt::format("{} is '{}', must be NAME:COUNT or NAME:COUNT:stop with COUNT >= 1",
                    kFaultPointVariable, text));
  }
  const std::string_view name = text.substr(0, colon);
  if (name != "any" && !is_fault_point(name)) {
    throw std::invalid_argument(fmt::format(
        "{} is '{}': there is no fault point {}, must be any or one of {}, {}", kFaultPointVariable,
        text, name, fmt::join(kFaultPoints, ", "), fmt::join(kSlurmFaultPoints, ", ")));
  }
  armed = {std::string(name), count, stop};
}

void fault_point(FaultPointName point) {
  const std::string_view name = point.text();
  if (armed.left == 0 || (armed.name != name && armed.name != "any")) return;
  if (--armed.left > 0) return;
  // Printed before the signal, so that a kill campaign sees which point was hit.
  const std::string line =
      fmt::format("{} {}\n", armed.stop ? "stopped at fault point" : "fault point", name);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  ::kill(::getpid(), armed.stop ? SIGSTOP : SIGKILL);
}

}  // namespace petlab::orchestrator
