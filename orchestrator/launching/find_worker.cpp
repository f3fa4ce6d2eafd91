#include "orchestrator/launching/find_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>
#include <vector>

#include "base/programs.h"

namespace petlab::orchestrator {

std::filesystem::path find_worker(const std::string& name, const std::string& search_path) {
  std::vector<std::filesystem::path> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(std::filesystem::absolute(name));
  } else if (!name.empty()) {
    for (const std::string& place : base::places_on_path(name, search_path)) {
      candidates.emplace_back(place);
    }
  }
  bool seen = false;
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(candidate, error)) continue;
    seen = true;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw std::invalid_argument(
      seen ? fmt::format("--worker is '{}', which may not be executed", name)
           : fmt::format("--worker is '{}', must be a program's path, or its name on PATH", name));
}

}  // namespace petlab::orchestrator
