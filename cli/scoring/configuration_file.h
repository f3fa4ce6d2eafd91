#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::cli {

/// True if a file name is that of a configuration: .yaml, .yml or .json.
bool is_configuration_file(const std::string& file);

/// Reads a trial's configuration from YAML or JSON, nested or with dotted keys, for
/// sweeps::trial_config_from_json. If the object has a `config` (trial.json, a trial of `petlab
/// plan --json`), its value is used. Throws std::invalid_argument naming file and line for syntax
/// errors, std::runtime_error for a file that cannot be read.
nlohmann::json read_configuration_file(const std::string& file);

/// An option's spelling of a field: prefix-length for prefix_length.
std::string option_name(std::string_view field);

}  // namespace petlab::cli
