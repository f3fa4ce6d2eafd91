#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/fields.h"

namespace petlab::sweeps {

/// How a condition compares.
enum class Comparison { equal, unequal, less, at_most, greater, at_least };

/// A value as it was written.
struct WrittenValue {
  std::string text;
  bool quoted = false;  ///< then it is text, whatever it looks like
};

/// `seed=1,2`: one of the conditions of --where and --only, before its word is looked up.
struct WrittenCondition {
  std::string word;
  Comparison comparison = Comparison::equal;
  std::vector<WrittenValue> values;  ///< one where an order is asked for, else at least one
};

/// Reads conditions that must all hold: `task=cola,rte and seed!=42`, with =, !=, <, <=, >, >=; a
/// list behind = is any of its values, behind != none of them; `and` or a comma divides conditions.
/// A value with spaces, commas or quotes stands in quotes, '…' or "…", a quote inside twice. Throws
/// std::invalid_argument naming `option`, what was found and what was expected.
std::vector<WrittenCondition> parse_conditions(std::string_view text, std::string_view option);

/// The values of a field's condition in its type: whole numbers also as `1..5`, switches as true,
/// false, 1 and 0; an unquoted `null` is a JSON null, the field means nothing then. Throws
/// std::invalid_argument naming the word.
std::vector<nlohmann::json> typed_values(const WrittenCondition& condition, FieldType type);

/// `1..5` as its two ends, the first not above the second; false where the text is no such range.
/// Throws std::invalid_argument for a range of more than 10,000 numbers.
bool parse_range(std::string_view text, std::int64_t& first, std::int64_t& last);

}  // namespace petlab::sweeps
