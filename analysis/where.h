#pragma once

#include <string_view>
#include <vector>

#include "results/scores.h"

namespace petlab::analysis {

/// The conditions of --where (sweeps/condition_text.h), in the words of results/words.h. Throws
/// std::invalid_argument for what does not parse, unknown words (naming the nearest) and values of
/// another type.
std::vector<results::Condition> parse_where(std::string_view text,
                                            std::string_view option = "--where");

/// A list of words divided by commas. Throws std::invalid_argument likewise, and for a word that
/// is there twice.
std::vector<results::Word> parse_words(std::string_view text, std::string_view option);

/// Throws std::invalid_argument for a text that a condition compares with and that no trial of the
/// database has: `no trial has module_kind adaptr; did you mean adapter?`. For a question that
/// selects nothing.
void explain_nothing(const results::ScoreReader& reader,
                     const std::vector<results::Condition>& where);

}  // namespace petlab::analysis
