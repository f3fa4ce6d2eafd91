#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::cli {

/// Whether a file's name is that of a configuration: .yaml, .yml or .json.
bool is_configuration_file(const std::string& file);

/// Reads a trial's configuration from YAML or JSON, nested or with dotted keys, as
/// sweeps::trial_config_from_json takes it. An object with a `config` (trial.json, a trial of
/// `petlab plan --json`) stands for that. Throws std::invalid_argument naming file and line for
/// what does not parse, std::runtime_error for a file that cannot be read.
nlohmann::json read_configuration_file(const std::string& file);

/// A field's name as an option spells it: prefix_length is prefix-length.
std::string option_name(std::string_view field);

}  // namespace petlab::cli
