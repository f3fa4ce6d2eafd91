#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::trainer {

/// base::parse_shallow_json, but all exceptions become trainer::Error and name `file`.
nlohmann::json parse_shallow_json(std::string_view text, const std::string& file);

}  // namespace petlab::trainer
