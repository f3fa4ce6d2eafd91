#include "reports/builds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shallow_json.h"
#include "results/query.h"

namespace petlab::reports {
namespace {

using results::Value;

std::string text_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

// Returns an empty string for anything but a string: third-party workers may report any JSON.
std::string string_member(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

std::string build_of(const std::string& name, const nlohmann::json& object) {
  const std::string commit = string_member(object, "commit");
  if (commit.empty()) return {};
  const auto clean = object.find("clean");
  const bool known = clean != object.end() && clean->is_boolean();
  return fmt::format("{} {}{}", name, commit,
                     !known               ? ""
                     : clean->get<bool>() ? " (clean)"
                                          : " (with changes)");
}

std::string build_line(const std::string& worker, const std::string& petlab_json,
                       const std::string& worker_json) {
  const nlohmann::json petlab_build = base::shallow_json_or_none(petlab_json);
  const nlohmann::json worker_build = base::shallow_json_or_none(worker_json);
  std::vector<std::string> parts = {build_of("petlab", petlab_build),
                                    build_of(worker.empty() ? "worker" : worker, worker_build)};
  if (const std::string version = string_member(worker_build, "libtorch"); !version.empty()) {
    parts.push_back("LibTorch " + version);
  }
  for (const char* key : {"processor", "gpu", "gpu_driver"}) {
    std::string value = string_member(worker_build, key);
    if (value.empty()) value = string_member(petlab_build, key);
    // The GPU driver is irrelevant for a trial on a CPU.
    const bool driver = std::string_view(key) == "gpu_driver";
    if (driver && (value.empty() || (string_member(worker_build, "gpu").empty() &&
                                     string_member(petlab_build, "gpu").empty()))) {
      continue;
    }
    parts.push_back(driver ? "driver " + value : value);
  }
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> builds_of(const results::Reader& reader,
                                   const std::vector<std::string>& sweeps) {
  std::map<std::string, std::int64_t> lines;
  for (const std::string& sweep : sweeps) {
    const results::QueryResult found = results::query(
        reader,
        "SELECT a.worker, p.text, q.text, count(DISTINCT t.key) FROM sweeps w CROSS JOIN "
        "sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial CROSS JOIN "
        "attempts a ON a.key = t.result_attempt CROSS JOIN provenance v ON v.attempt = a.key LEFT "
        "JOIN provenance_texts p ON p.key = v.petlab LEFT JOIN provenance_texts q ON q.key = "
        "v.worker WHERE w.name = ?1 AND t.key NOT IN (SELECT trial FROM hidden_trials) GROUP BY 1, "
        "v.petlab, v.worker",
        {sweep});
    for (const std::vector<Value>& row : found.rows) {
      const std::string line = build_line(text_of(row[0]), text_of(row[1]), text_of(row[2]));
      if (!line.empty()) lines[line] += std::get<std::int64_t>(row[3]);
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(lines.begin(), lines.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [line, trials] : sorted) {
    texts.push_back(fmt::format("{}: {} {}", line, trials, trials == 1 ? "trial" : "trials"));
  }
  return texts;
}

}  // namespace petlab::reports
