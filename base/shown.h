#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace petlab::base {

/// `'lerning_rate'`, `-0.1`, `true`, `a list`: a value as a message shows it, cut at 60 characters.
std::string shown(const nlohmann::json& value);

}  // namespace petlab::base
