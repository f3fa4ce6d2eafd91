#include "tests/orchestrator/traced_calls.h"

#include <regex>
#include <utility>

namespace petlab::testing {

std::optional<Call> call_from(const std::string& line, const std::filesystem::path& folder) {
  const std::size_t space = line.find(' ');
  Call call{line.substr(0, space), line.substr(space + 1)};
  if (call.path.empty()) {  // fork, kill
    call.path = "*";
    return call;
  }
  if (call.path.starts_with("pipe:")) {
    call.path = "pipe:*";
    return call;
  }
  const std::string root = folder.string() + "/";
  if (!call.path.starts_with(root) || call.path.ends_with(" (deleted)")) return std::nullopt;
  static const std::pair<std::regex, const char*> patterns[] = {
      {std::regex("[0-9]+-[0-9]+-[0-9a-f]{8}\\.(lock|run)"), "*-????????.$1"},
      {std::regex("[0-9]+-[0-9]+-[0-9a-f]{8}\\.cpu-[0-9]+(?:\\.[0-9]+)?\\.lock(\\.asked)?"),
       "*.cpu-*.lock$1"},
      {std::regex("[0-9]+-[0-9a-f]{8}\\.json"), "*-????????.json"},  // posts in the inbox
      {std::regex("[0-9]+-[0-9a-f]{8}\\.json\\.[A-Za-z0-9]{6}"), "*-????????.json.??????"},
      {std::regex("step-[0-9]+\\.txt"), "step-*.txt"},
      {std::regex("cpu-[0-9]+(\\.[0-9]+)?\\.lock"), "cpu-*.lock"},
      {std::regex("\\.[0-9]+\\.new-[0-9]+"), ".*.new-*"},
      {std::regex("(\\..*\\.db(?:\\.v[0-9]+\\.bak)?\\.new)-[0-9]+-[0-9a-f]{8}(-[a-z]+)?"),
       "$1-*-????????$2"},
      {std::regex("(.*\\.(?:jsonl?|delivered))\\.[A-Za-z0-9]{6}"), "$1.??????"},
      {std::regex("sha256-[0-9a-f]+\\.code\\.[A-Za-z0-9]{6}"), "sha256-*.code.??????"},
      {std::regex("sha256-[0-9a-f]+\\.yaml\\.[A-Za-z0-9]{6}"), "sha256-*.yaml.??????"},
      {std::regex("[0-9a-f]{12,}|[0-9]+"), "*"},
  };
  std::string pattern = "*";
  for (const std::filesystem::path& part : std::filesystem::path(call.path.substr(root.size()))) {
    std::string name = part.string();
    for (const auto& [regex, to] : patterns) {
      if (!std::regex_match(name, regex)) continue;
      name = std::regex_replace(name, regex, to);
      break;
    }
    pattern += "/" + name;
  }
  call.path = pattern;
  return call;
}

}  // namespace petlab::testing
