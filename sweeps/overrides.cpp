#include "sweeps/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "base/file_problems.h"
#include "base/shown.h"
#include "sweeps/setting_reader.h"

namespace petlab::sweeps {
namespace {

// task and tasks are two names of one field.
bool same_field(const Setting& a, const Setting& b) {
  if (a.target != b.target) return false;
  return a.target == Target::tasks || a.target == Target::priority || a.name == b.name;
}

// Reports a problem in text from the command line, without file name and line.
[[noreturn]] void fail_as_option(const base::FileProblemsError& error, std::string_view file) {
  std::string message;
  for (const std::string& problem : error.problems()) {
    const std::string place = fmt::format("{}:1: ", file);
    std::string text = problem.starts_with(place) ? problem.substr(place.size()) : problem;
    if (!text.starts_with("--set")) text = "--set " + text;
    message += (message.empty() ? "" : "\n") + text;
  }
  throw std::invalid_argument(message);
}

Setting read_override(const std::string& text, const std::filesystem::path& file,
                      const Locations& locations, SweepDraft& draft) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw std::invalid_argument(
        fmt::format("--set: found {}, expected FIELD=VALUE such as training.epochs=1",
                    base::shown(nlohmann::json(text))));
  }
  const std::string option = "--set";
  base::FileProblems problems(option);
  SettingReader reader(file, locations, problems, draft);
  Setting setting;
  try {
    const std::string name = text.substr(0, equals);
    const bool known = reader.find_target("--set", name, 1, setting);
    const base::YamlNode value = base::parse_yaml(text.substr(equals + 1), problems);
    const bool list = value.is_sequence() && name != "tasks";
    if (known && (value.is_map() || list)) {
      problems.add(1, name, base::shown(value),
                   "one value, the same for every trial (variants and grids belong in the file)");
    } else if (known && problems.empty()) {
      reader.read_value(setting, value, false);
    }
    problems.throw_if_any();
  } catch (const base::FileProblemsError& error) {
    fail_as_option(error, option);
  }
  return setting;
}

// Removes settings of the same field and collects their lines.
void remove_setting(std::vector<Setting>& settings, const Setting& setting, std::set<int>& lines) {
  std::erase_if(settings, [&](const Setting& other) {
    if (!same_field(other, setting)) return false;
    lines.insert(other.line);
    return true;
  });
}

}  // namespace

void apply_overrides(SweepDraft& draft, std::span<const std::string> overrides,
                     const std::filesystem::path& file, const Locations& locations,
                     std::vector<std::string>& notes) {
  for (const std::string& text : overrides) {
    Setting setting = read_override(text, file, locations, draft);
    for (const Setting& other : draft.overrides) {
      if (!same_field(other, setting)) continue;
      throw std::invalid_argument(
          fmt::format("--set {}: found {} twice, expected it once", text, setting.name));
    }
    std::set<int> lines;
    remove_setting(draft.base, setting, lines);
    for (Variant& variant : draft.variants) remove_setting(variant.settings, setting, lines);
    for (Axis& axis : draft.axes) {
      for (std::vector<Setting>& point : axis.points) remove_setting(point, setting, lines);
    }
    for (Rule& rule : draft.when) remove_setting(rule.set, setting, lines);
    if (!lines.empty()) {
      notes.push_back(fmt::format("--set {} replaces the value in {}, {} {}", text, file.string(),
                                  lines.size() == 1 ? "line" : "lines", fmt::join(lines, ", ")));
    }
    setting.line = draft.base_line;
    draft.overrides.push_back(std::move(setting));
  }
}

void check_overrides_merge_nothing(std::span<const std::string> overrides,
                                   std::span<const std::size_t> before,
                                   std::span<const std::size_t> after,
                                   const std::filesystem::path& file) {
  std::unordered_map<std::size_t, std::set<std::size_t>> made_of;
  for (std::size_t at = 0; at < std::min(before.size(), after.size()); ++at) {
    if (before[at] != kNoTrial && after[at] != kNoTrial) made_of[after[at]].insert(before[at]);
  }
  std::size_t lost = 0;
  for (const auto& [trial, parts] : made_of) lost += parts.size() - 1;
  if (lost == 0) return;
  throw std::invalid_argument(
      fmt::format("--set {}: {} {} of {} would become equal to others, because nothing else "
                  "distinguishes {}; to choose some of a sweep's trials, use --only",
                  fmt::join(overrides, ", --set "), lost, lost == 1 ? "trial" : "trials",
                  file.string(), lost == 1 ? "it" : "them"));
}

}  // namespace petlab::sweeps
