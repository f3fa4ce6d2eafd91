#pragma once

#include <exception>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::base {

// For all JSON that a user or another program wrote. A value is copied, compared and printed by
// functions that call themselves at each level, so one of more than kMaxJsonDepth levels
// (base/json_line.h) is refused before it is there.

/// Throws Error naming `name` where it is nested deeper, nlohmann's json::exception where it is no
/// JSON or a number is too large.
nlohmann::json parse_shallow_json(std::string_view text, const std::string& name);
nlohmann::ordered_json parse_shallow_ordered_json(std::string_view text, const std::string& name);

/// A discarded value (is_discarded()) in both cases.
nlohmann::json shallow_json_or_none(std::string_view text);
nlohmann::json shallow_json_or_none(std::istream& in);
nlohmann::ordered_json shallow_ordered_json_or_none(std::string_view text);

/// What is wrong with a JSON text: `column 5: syntax error …`, with the line where it is not the
/// first. One short line, however long the token is that the library complains about.
std::string json_problem(const std::exception& error);

}  // namespace petlab::base
