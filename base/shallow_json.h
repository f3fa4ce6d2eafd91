#pragma once

#include <exception>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace petlab::base {

// Parsers for all JSON from users and other programs. Functions on JSON values are recursive, so a
// text with more than kMaxJsonDepth levels (base/json_line.h) is rejected during parsing.

/// Throws Error naming `name` if the text is nested deeper, and nlohmann's json::exception if it is
/// not JSON or a number is too large.
nlohmann::json parse_shallow_json(std::string_view text, const std::string& name);
nlohmann::ordered_json parse_shallow_ordered_json(std::string_view text, const std::string& name);

/// Returns a discarded value (is_discarded()) in both cases.
nlohmann::json shallow_json_or_none(std::string_view text);
nlohmann::json shallow_json_or_none(std::istream& in);
nlohmann::ordered_json shallow_ordered_json_or_none(std::string_view text);

/// A short one-line description of a JSON error: `column 5: syntax error …`, with the line if it is
/// not the first. Long tokens are shortened.
std::string json_problem(const std::exception& error);

}  // namespace petlab::base
