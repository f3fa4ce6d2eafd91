#include "sweeps/trial_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/field_problems.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {

std::string_view to_string(ComputeType type) {
  return type == ComputeType::bf16 ? "bf16" : "float32";
}

std::optional<ComputeType> compute_type_from(std::string_view text) {
  for (const ComputeType type : {ComputeType::float32, ComputeType::bf16}) {
    if (text == to_string(type)) return type;
  }
  return std::nullopt;
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& field, const json& found, std::string_view wanted) {
  throw std::invalid_argument(
      fmt::format("{} is {}, must be {}", field, base::shown(found), wanted));
}

const std::string& task_name(const std::string& field, const json& value) {
  if (!value.is_string()) refuse(field, value, "the name of a task");
  return value.get_ref<const std::string&>();
}

void set_field(TrialConfig& config, const std::string& name, const json& value) {
  const Field* const field = find_field(name);
  if (field == nullptr || !is_field_of(*field, config.catalog)) {
    std::vector<std::string> known{"task", "tasks", "user"};
    for (const Field& row : fields()) {
      if (is_field_of(row, config.catalog)) known.emplace_back(row.name);
    }
    const std::string near = nearest_word(name, known);
    throw std::invalid_argument(
        fmt::format("{} is not a field of a trial{}", name,
                    near.empty() ? "" : fmt::format(", nearest: {}", near)));
  }
  if (!field->set(config, value)) refuse(name, value, field->wanted);
}

void write_tasks(const TrialConfig& config, ordered_json& out) {
  if (config.tasks.size() == 1) {
    out["task"] = config.tasks.front();
  } else {
    out["tasks"] = config.tasks;
  }
}

}  // namespace

std::vector<Problem> validate(const TrialConfig& config,
                              std::span<const TaskDeclaration> declared) {
  std::vector<Problem> problems;
  for (const FieldProblem& problem : field_problems(config, declared)) {
    problems.push_back(
        {problem.field, fmt::format("is {}, must be {}", problem.found, problem.wanted)});
  }
  return problems;
}

ordered_json to_json(const TrialConfig& config) {
  ordered_json out = ordered_json::object();
  if (!config.catalog.empty()) out["catalog"] = config.catalog;
  if (!is_active(*find_field("backbone"), config)) write_tasks(config, out);
  for (const Field& field : fields()) {
    if (!is_written(field, config)) continue;
    ordered_json value = field.get(config);
    if (value.is_null()) continue;
    const std::size_t dot = field.name.find('.');
    if (dot == std::string_view::npos) {
      out[std::string(field.name)] = std::move(value);
    } else {
      out[std::string(field.name.substr(0, dot))][std::string(field.name.substr(dot + 1))] =
          std::move(value);
    }
    if (field.name == "backbone") write_tasks(config, out);  // the task is written second
  }
  out["user"] = ordered_json::parse(config.user);
  return out;
}

TrialConfig trial_config_from_json(const json& input) {
  if (!input.is_object()) refuse("config", input, "an object");
  std::string kind = ModuleConfig{}.kind;
  if (const auto module = input.find("module"); module != input.end()) {
    if (!module->is_object()) refuse("module", *module, "an object");
    if (const auto named = module->find("kind"); named != module->end()) {
      if (!named->is_string()) refuse("module.kind", *named, find_field("module.kind")->wanted);
      kind = named->get<std::string>();
    }
  }
  std::string catalog;
  if (const auto named = input.find("catalog"); named != input.end()) {
    if (!named->is_string()) refuse("catalog", *named, "the name of a worker's catalog");
    catalog = named->get<std::string>();
    if (find_catalog(catalog) == nullptr) {
      throw std::invalid_argument(
          fmt::format("catalog is {}, which no worker declared here", base::in_quotes(catalog)));
    }
  }
  TrialConfig config = default_config(kind, catalog);
  for (const auto& [key, value] : input.items()) {
    if (key == "catalog") continue;
    if (key == "task") {
      config.tasks = {task_name(key, value)};
    } else if (key == "tasks") {
      if (!value.is_array()) refuse(key, value, "a list of names of tasks");
      config.tasks.clear();
      for (const json& name : value) config.tasks.push_back(task_name(key, name));
    } else if (key == "user") {
      if (!value.is_object()) refuse(key, value, "an object");
      config.user = value.dump();
    } else if (is_group_of_fields(key)) {
      if (!value.is_object()) refuse(key, value, "an object");
      for (const auto& [inner, inner_value] : value.items()) {
        set_field(config, key + "." + inner, inner_value);
      }
    } else {
      set_field(config, key, value);
    }
  }
  if (input.contains("task") && input.contains("tasks")) {
    throw std::invalid_argument("found both task and tasks, expected one of them");
  }
  return config;
}

}  // namespace petlab::sweeps
