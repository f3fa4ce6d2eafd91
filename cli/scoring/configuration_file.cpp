#include "cli/scoring/configuration_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file_problems.h"
#include "base/files.h"
#include "base/shown.h"
#include "base/yaml_tree.h"
#include "sweeps/fields.h"

namespace petlab::cli {
namespace {

// Converts `module.kind: x` to `module: {kind: x}`.
nlohmann::json nested(const nlohmann::json& flat, const std::string& file) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [key, value] : flat.items()) {
    const std::size_t dot = key.find('.');
    if (const auto group = object.find(key.substr(0, dot));
        dot != std::string::npos && group != object.end() && !group->is_object()) {
      throw std::invalid_argument(fmt::format("{}: {} is {}, expected a group of keys", file,
                                              group.key(), base::shown(*group)));
    }
    nlohmann::json& place =
        dot == std::string::npos ? object[key] : object[key.substr(0, dot)][key.substr(dot + 1)];
    if (place.is_object() && value.is_object()) {
      place.update(value);
    } else {
      place = value;
    }
  }
  return object;
}

}  // namespace

bool is_configuration_file(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

nlohmann::json read_configuration_file(const std::string& file) {
  // JSON is valid YAML.
  base::FileProblems problems(file);
  nlohmann::json configuration =
      base::to_json(base::parse_yaml(base::read_file(file, base::kMaxYamlBytes), problems));
  problems.throw_if_any();
  if (configuration.is_object() && configuration.contains("config")) {
    configuration = configuration["config"];
  }
  if (!configuration.is_object()) {
    throw std::invalid_argument(
        fmt::format("{}: found no mapping, expected a trial's configuration", file));
  }
  return nested(configuration, file);
}

std::string option_name(std::string_view field) {
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace petlab::cli
