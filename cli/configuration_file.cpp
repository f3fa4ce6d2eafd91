#include "cli/configuration_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace petlab::cli {
namespace {

using nlohmann::json;

json scalar_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  // The tag of a quoted scalar.
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  std::int64_t whole = 0;
  if (YAML::convert<std::int64_t>::decode(node, whole)) return whole;
  double real = 0;
  if (YAML::convert<double>::decode(node, real) && std::isfinite(real)) return real;
  return text;
}

// Aliases make a small file a big tree; a configuration has some tens of nodes.
constexpr int kMaxNodes = 10000;

json to_json(const YAML::Node& node, int& nodes) {
  if (++nodes > kMaxNodes) {
    throw YAML::RepresentationException(node.Mark(), fmt::format("more than {} values", kMaxNodes));
  }
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return scalar_json(node);
    case YAML::NodeType::Sequence: {
      json list = json::array();
      for (const YAML::Node& item : node) list.push_back(to_json(item, nodes));
      return list;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& item : node) object[item.first.Scalar()] = to_json(item.second, nodes);
      return object;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return nullptr;
}

// `module.kind: x` as `module: {kind: x}`.
json nested(const json& flat) {
  json object = json::object();
  for (const auto& [key, value] : flat.items()) {
    const std::size_t dot = key.find('.');
    json& place =
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

json read_configuration_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("cannot read {}", file));
  std::ostringstream text;
  text << in.rdbuf();
  json configuration;
  try {
    // JSON is YAML as well.
    int nodes = 0;
    configuration = to_json(YAML::Load(text.str()), nodes);
  } catch (const YAML::Exception& error) {
    throw std::invalid_argument(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
  if (configuration.is_object() && configuration.contains("config")) {
    configuration = configuration["config"];
  }
  if (!configuration.is_object()) {
    throw std::invalid_argument(
        fmt::format("{}: found no mapping, wanted a trial's configuration", file));
  }
  return nested(configuration);
}

std::string option_name(std::string_view field) {
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace petlab::cli
