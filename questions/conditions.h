#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "results/scores.h"
#include "sweeps/condition_text.h"

namespace petlab::questions {

using results::Condition;

/// The field that a report's definition names: a word of results/words.h, or one that only reports
/// know: `split` and `step` of a score, `state` of a trial, and what reports compute
/// (`bls_percent`). `user_KEY` is `user.KEY`. Throws std::invalid_argument for an unknown name,
/// with the nearest known one.
results::Word field_named(std::string_view text);

/// The condition in the type of its field, however its values look: `variant=007` compares with the
/// text "007". A field of the free group compares with the number and with the text that an
/// unquoted value may mean. Throws std::invalid_argument for a value of another type.
Condition typed(const sweeps::WrittenCondition& written, results::Word word);

/// What the database keeps of a field's JSON: switches as 0 and 1, lists and objects as text.
results::Value value_of(const nlohmann::json& json);

/// That the field is one of the values, which have its type.
Condition one_of(std::string_view field, std::vector<results::Value> values, int line = 0);

/// The conditions of --where (sweeps/condition_text.h), in the words of results/words.h. Throws
/// std::invalid_argument for what does not parse, unknown words (naming the nearest) and values of
/// another type.
std::vector<Condition> parse_where(std::string_view text, std::string_view option = "--where");

/// The conditions as parse_where() reads them: `task=cola,rte and seed<45`.
std::string where_text(const std::vector<Condition>& conditions);

/// A list of words divided by commas. Throws std::invalid_argument likewise, and for a word that
/// is there twice.
std::vector<results::Word> parse_words(std::string_view text, std::string_view option);

/// Throws std::invalid_argument for a text that a condition compares with and that no trial of the
/// database has: `no trial has module_kind adaptr; did you mean adapter?`. For a question that
/// selects nothing.
void explain_nothing(const results::ScoreReader& reader, const std::vector<Condition>& where);

}  // namespace petlab::questions
