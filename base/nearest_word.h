#pragma once

#include <span>
#include <string>
#include <string_view>

namespace petlab::base {

/// The known word with the fewest insertions, deletions, replacements and swaps of neighbours from
/// `word` (case does not count; of equals the first); empty where none comes near, that is within
/// half the longer one's length.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

/// The message for a word that is not known: `unknown metric "blue"; did you mean "bleu"?`, or
/// all known words where none is near.
std::string unknown_word(std::string_view kind, std::string_view word,
                         std::span<const std::string_view> known);

}  // namespace petlab::base
