#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace petlab::cli {

/// A field of a trial's configuration, as sweep files name it.
struct ConfigurationEntry {
  std::string name;  // "training.epochs", "task", "user.width"
  nlohmann::ordered_json value;
  bool usual = false;  // the default of its kind of module
};

/// The fields of a configuration's JSON text, in its order; `task` also where it has several.
/// Throws std::runtime_error for what is no configuration.
std::vector<ConfigurationEntry> flat_configuration(const std::string& config);

}  // namespace petlab::cli
