#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "metrics/classification.h"

namespace petlab::metrics {

// Labels as T5 reads and writes them (reference/method.md, "T5-base"): class ids "0", "1", "2", and
// for STS-B the score with one decimal. ASCII white space at both ends does not count.

/// The class in a generated text: exactly one ASCII digit below num_labels (at most 10); anything
/// else is no label.
std::optional<std::int64_t> parse_class_text(std::string_view text, std::int64_t num_labels);

/// The score in a generated text: an ASCII decimal number with a finite value, kept as it is;
/// anything else ("nan", "1_0", "3,8") is no score.
std::optional<double> parse_score_text(std::string_view text);

/// What counts for a text that is no score.
inline constexpr double kInvalidScore = -1.0;

/// The target text of an STS-B score: rounded to one decimal as numpy rounds (times 10, half to
/// even, divided by 10) in double. Throws std::invalid_argument where the score is not finite.
std::string score_text(double score);

/// Counts generated texts against gold labels, (n) each; a text that is no label counts by
/// Confusion::add_invalid. Throws std::invalid_argument as Confusion does.
Confusion confusion_of_texts(std::span<const std::int64_t> gold,
                             std::span<const std::string> generated, std::int64_t num_labels);

}  // namespace petlab::metrics
