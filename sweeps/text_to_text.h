#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sweeps/task.h"

namespace petlab::sweeps {

// Tasks in the form for text-to-text backbones (reference/method.md, "T5-base").

/// The task's source template with {text1} and {text2} replaced by `texts`, one per text column:
/// "mnli premise: … hypothesis: …". Placeholders inside texts are not replaced. Throws
/// std::invalid_argument if the template needs more texts.
std::string source_text(const TaskDeclaration& task, std::span<const std::string> texts);

/// The expected output for a class: its target text, or its number if the task has none. Throws
/// std::invalid_argument for an unknown class.
std::string target_text(const TaskDeclaration& task, std::int64_t label);

/// The expected output for a score: metrics::score_text, one decimal.
std::string score_target_text(double score);

}  // namespace petlab::sweeps
