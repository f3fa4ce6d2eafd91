#include "orchestrator/launching/launcher.h"

#include <fmt/format.h>

#include <cstring>

namespace petlab::orchestrator {
namespace {

std::string told(const Exited& end) { return fmt::format("exit code {}", end.code); }
std::string told(const Killed& end) {
  return fmt::format("signal {} ({})", end.signal, ::strsignal(end.signal));
}
std::string told(const TakenAway& end) { return end.why; }
std::string told(const OutOfTime& end) { return end.why; }
std::string told(const Refused& end) { return end.why; }

}  // namespace

std::string to_string(const WorkerEnd& end) {
  return std::visit([](const auto& how) { return told(how); }, end.how);
}

}  // namespace petlab::orchestrator
