#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sweeps/task.h"

namespace petlab::sweeps {

// A task as a text-to-text backbone sees it (reference/method.md, "T5-base").

/// The task's source with `texts`, one a text column, in the places {text1} and {text2}: "mnli
/// premise: … hypothesis: …". What stands in a text is no place. Throws std::invalid_argument for
/// fewer texts than the source has places.
std::string source_text(const TaskDeclaration& task, std::span<const std::string> texts);

/// What is to be written for a class: its target text, or its number where the task has none.
/// Throws std::invalid_argument for a class that the task does not have.
std::string target_text(const TaskDeclaration& task, std::int64_t label);

/// What is to be written for a score: metrics::score_text, one decimal.
std::string score_target_text(double score);

}  // namespace petlab::sweeps
