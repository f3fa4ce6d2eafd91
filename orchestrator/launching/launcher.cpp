#include "orchestrator/launching/launcher.h"

#include <fmt/format.h>

#include <cstring>

namespace petlab::orchestrator {
namespace {

std::string how_text(const Exited& end) { return fmt::format("exit code {}", end.code); }
std::string how_text(const Killed& end) {
  return fmt::format("signal {} ({})", end.signal, ::strsignal(end.signal));
}
std::string how_text(const TakenAway& end) { return end.why; }
std::string how_text(const OutOfTime& end) { return end.why; }
std::string how_text(const Refused& end) { return end.why; }

}  // namespace

std::string to_string(const WorkerEnd& end) {
  return std::visit([](const auto& how) { return how_text(how); }, end.how);
}

}  // namespace petlab::orchestrator
