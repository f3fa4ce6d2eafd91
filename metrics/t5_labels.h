#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "metrics/classification.h"

namespace petlab::metrics {

// Labels as T5 reads and writes them (reference/method.md, "T5-base"): class ids "0", "1", "2", and
// for STS-B the score with one decimal. Leading and trailing ASCII white space is ignored.

/// The class in a generated text: exactly one ASCII digit below num_labels (at most 10). Anything
/// else is not a label.
std::optional<std::int64_t> parse_class_text(std::string_view text, std::int64_t num_labels);

/// The score in a generated text: an ASCII decimal number with a finite value, unrounded. Anything
/// else ("nan", "1_0", "3,8") is not a score.
std::optional<double> parse_score_text(std::string_view text);

/// The value used for a text that is not a score.
inline constexpr double kInvalidScore = -1.0;

/// The target text of an STS-B score: rounded to one decimal in double, as numpy rounds (times 10,
/// half to even, divided by 10). Throws std::invalid_argument if the score is not finite.
std::string score_text(double score);

/// Counts generated texts against gold labels, (n) each. Texts that are not labels are counted by
/// Confusion::add_invalid. Throws std::invalid_argument as Confusion does.
Confusion confusion_of_texts(std::span<const std::int64_t> gold,
                             std::span<const std::string> generated, std::int64_t num_labels);

}  // namespace petlab::metrics
