#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "results/scores.h"
#include "sweeps/condition_text.h"

namespace petlab::questions {

using results::Condition;

/// The field named in a report's definition: a word of results/words.h, or one that exists only in
/// reports: `split` and `step` of a score, `state` of a trial, and computed ones (`bls_percent`).
/// `user_KEY` means `user.KEY`. Throws std::invalid_argument for an unknown name, with the nearest
/// known one.
results::Word field_named(std::string_view text);

/// Converts a condition's values to the type of its field: `variant=007` compares with the text
/// "007". For a field of the free group, an unquoted value compares both as number and as text.
/// Throws std::invalid_argument for a value of another type.
Condition typed(const sweeps::WrittenCondition& written, results::Word word);

/// Converts JSON to a field's value in the database: booleans as 0 and 1, lists and objects as
/// text.
results::Value value_of(const nlohmann::json& json);

/// The condition that the field has one of the values, which must have its type.
Condition one_of(std::string_view field, std::vector<results::Value> values, int line = 0);

/// Parses the conditions of --where (sweeps/condition_text.h), in the words of results/words.h.
/// Throws std::invalid_argument for syntax errors, unknown words (naming the nearest) and values of
/// another type.
std::vector<Condition> parse_where(std::string_view text, std::string_view option = "--where");

/// Formats conditions so that parse_where() can read them: `task=cola,rte and seed<45`.
std::string where_text(const std::vector<Condition>& conditions);

/// Parses a list of words separated by commas. Throws std::invalid_argument as parse_where(), and
/// for duplicate words.
std::vector<results::Word> parse_words(std::string_view text, std::string_view option);

/// Explains why a question selects nothing: throws std::invalid_argument if a condition compares
/// with a text that no trial of the database has: `no trial has module_kind adaptr; did you mean
/// adapter?`.
void explain_nothing(const results::ScoreReader& reader, const std::vector<Condition>& where);

}  // namespace petlab::questions
