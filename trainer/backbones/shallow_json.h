#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::trainer {

/// Parses JSON of at most sweeps::kMaxJsonDepth levels: a value is copied, compared and printed by
/// functions that call themselves at each level. Throws Error naming `file`.
nlohmann::json parse_shallow_json(std::string_view text, const std::string& file);

}  // namespace petlab::trainer
