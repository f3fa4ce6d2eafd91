#include "orchestrator/planning/gang_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "base/shown.h"
#include "sweeps/fields.h"

namespace petlab::orchestrator {
namespace {

void refuse(const std::string& key, const nlohmann::json& found, const char* wanted) {
  throw std::invalid_argument(fmt::format("{} is {}, must be {}", key, base::shown(found), wanted));
}

constexpr std::string_view kUser = "user.";

void require_field(const std::string& name) {
  if (sweeps::find_field(name) != nullptr || name.starts_with(kUser)) return;
  const std::string nearest = sweeps::nearest_field(name);
  throw std::invalid_argument(
      fmt::format("gangs names the field '{}', which no trial has{}", base::printable(name),
                  nearest.empty() ? "" : fmt::format(" (nearest: {})", nearest)));
}

// The value of a field; null if it does not apply to the trial.
nlohmann::json value_of(const sweeps::TrialConfig& config, const std::string& name) {
  if (const sweeps::Field* const field = sweeps::find_field(name)) {
    return sweeps::is_active(*field, config) ? field->get(config) : nlohmann::json();
  }
  const nlohmann::json user = nlohmann::json::parse(config.user);
  const auto found = user.find(name.substr(kUser.size()));
  return found != user.end() ? *found : nlohmann::json();
}

}  // namespace

GangRule parse_gang_rule(const nlohmann::json& found) {
  if (!found.is_object()) refuse("gangs", found, "an object");
  GangRule rule;
  for (const auto& [key, value] : found.items()) {
    if (key == "equal") {
      if (!value.is_array()) refuse("gangs.equal", value, "a list of fields");
      for (const nlohmann::json& field : value) {
        if (!field.is_string()) refuse("an entry of gangs.equal", field, "the name of a field");
        rule.equal.push_back(field.get<std::string>());
        require_field(rule.equal.back());
      }
    } else if (key == "alone") {
      if (!value.is_object()) refuse("gangs.alone", value, "an object of lists of values");
      for (const auto& [field, values] : value.items()) {
        require_field(field);
        if (!values.is_array()) refuse("gangs.alone." + field, values, "a list of values");
        for (const nlohmann::json& one : values) rule.alone[field].push_back(one.dump());
      }
    } else {
      throw std::invalid_argument(
          fmt::format("gangs has a key '{}', expected equal or alone", base::printable(key)));
    }
  }
  return rule;
}

std::vector<std::optional<std::size_t>> gang_groups(const GangRule& rule,
                                                    const std::vector<sweeps::SweepTrial>& trials) {
  std::unordered_map<std::string, std::size_t> groups;
  std::vector<std::optional<std::size_t>> group_of;
  group_of.reserve(trials.size());
  for (const sweeps::SweepTrial& trial : trials) {
    const bool alone = std::any_of(rule.alone.begin(), rule.alone.end(), [&](const auto& entry) {
      return std::count(entry.second.begin(), entry.second.end(),
                        value_of(trial.config, entry.first).dump()) > 0;
    });
    std::string key;
    for (const std::string& field : rule.equal) key += value_of(trial.config, field).dump() + "\n";
    const std::size_t group = groups.emplace(std::move(key), groups.size()).first->second;
    group_of.push_back(alone ? std::nullopt : std::optional(group));
  }
  return group_of;
}

std::int64_t most_in_gang(const GangRequest& request, const std::optional<GangRule>& rule,
                          const std::string& why_no_rule) {
  if (request.size == 1) return 1;
  std::string why;
  if (!rule) {
    why = why_no_rule;
  } else if (request.pack > 1) {
    why = "--pack lets several workers share a GPU, each with one trial";
  } else if (request.fresh_workers) {
    why = "with --fresh-workers, each worker takes one trial";
  } else if (request.detach) {
    why = "with --detach, each job takes an equal part of the trials";
  }
  if (request.size == kAutomaticGang) return why.empty() && request.on_gpus ? kGangOnGpu : 1;
  if (!why.empty()) throw std::invalid_argument(fmt::format("--gang {}: {}", request.size, why));
  return request.size;
}

}  // namespace petlab::orchestrator
