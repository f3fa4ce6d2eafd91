#pragma once

#include <span>
#include <string>
#include <string_view>

namespace petlab::metrics {

/// The known word with the smallest edit distance to `word` (the first of equals); empty where
/// `known` is. For messages that suggest a word, so the distance has no limit.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

/// "SUBJECT is 'WORD', must be one of a, b, c (nearest: b)".
std::string unknown_word_message(std::string_view subject, std::string_view word,
                                 std::span<const std::string_view> known);

}  // namespace petlab::metrics
