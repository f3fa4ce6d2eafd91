#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::trainer {

/// base::parse_shallow_json, but all that it throws is an Error of this folder naming `file`.
nlohmann::json parse_shallow_json(std::string_view text, const std::string& file);

}  // namespace petlab::trainer
