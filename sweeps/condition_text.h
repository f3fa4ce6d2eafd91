#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/fields.h"

namespace petlab::sweeps {

/// The operator of a condition.
enum class Comparison { equal, unequal, less, at_most, greater, at_least };

/// A value as written by the user.
struct WrittenValue {
  std::string text;
  bool quoted = false;  ///< always a text, even if it looks like a number
};

/// A condition of --where or --only, such as `seed=1,2`, before looking up its word.
struct WrittenCondition {
  std::string word;
  Comparison comparison = Comparison::equal;
  std::vector<WrittenValue> values;  ///< exactly one for order comparisons, else at least one
};

/// Parses a conjunction of conditions: `task=cola,rte and seed!=42`, with =, !=, <, <=, >, >=. A
/// list after = matches any of its values, after != none of them; `and` or a comma separates
/// conditions. Values with spaces, commas or quotes are quoted, '…' or "…", with inner quotes
/// doubled. Throws std::invalid_argument naming `option`, what was found and what was expected.
std::vector<WrittenCondition> parse_conditions(std::string_view text, std::string_view option);

/// Converts the values of a field's condition to its type: integers also as `1..5`, switches as
/// true, false, 1 and 0. An unquoted `null` is a JSON null and means that the field does not apply.
/// Throws std::invalid_argument naming the word.
std::vector<nlohmann::json> typed_values(const WrittenCondition& condition, FieldType type);

/// Parses `1..5` into its ends, the first not above the second; false if the text is not such a
/// range. Throws std::invalid_argument for a range of more than 10,000 numbers.
bool parse_range(std::string_view text, std::int64_t& first, std::int64_t& last);

}  // namespace petlab::sweeps
