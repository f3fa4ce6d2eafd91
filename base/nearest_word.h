#pragma once

#include <span>
#include <string>
#include <string_view>

namespace petlab::base {

/// Returns the known word with the smallest edit distance from `word`, counting insertions,
/// deletions, replacements and swaps of adjacent characters, and ignoring case. The first one wins
/// a tie. Empty if the distance is at least half of the longer word's length.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

/// The message for an unknown word: `unknown metric "blue"; did you mean "bleu"?`. Lists all known
/// words if none is near.
std::string unknown_word(std::string_view kind, std::string_view word,
                         std::span<const std::string_view> known);

}  // namespace petlab::base
