#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// True if `field` belongs to a metric's value (split, step, name) rather than its trial. `task`
/// belongs to both: a trial has tasks, a value has one of them.
bool is_score_field(const std::string& field);

using results::number_in;

/// Formats a value for people: `0.5`; true is 1; NULL is `—`.
std::string to_text(const results::Value& value);

/// A field of the trial; NULL if it has none with that name.
const results::Value& field_of(const Trial& trial, const std::string& field);

/// True if the conditions on the trial's fields hold; those on tasks must hold for one of its
/// tasks.
bool matches(const Selection& selection, const Trial& trial);

/// True if the conditions on split, name and task hold.
bool matches(const Selection& selection, const Series& series);

/// True if the conditions on the task hold.
bool selects_task(const Selection& selection, const std::string& task);

/// True if the conditions on the task and the split hold.
bool selects(const Selection& selection, const std::string& task, const std::string& split);

/// True if the conditions on split, step, name and task hold.
bool matches(const Selection& selection, const Score& score);

/// The first condition on the step, or nullptr.
const Condition* step_condition(const std::vector<const Selection*>& selections);

/// The steps listed in such a condition, ascending and without repeats.
std::vector<std::int64_t> steps_of(const Condition& condition);

/// Replaces `{field}` in `text` by the trial's values. `{field*100}` multiplies a number;
/// `{field|88}` and `{field*100|100}` give the text for NULL.
std::string filled(const std::string& text, const Trial& trial);

/// The fields in the braces of such a text.
std::vector<std::string> fields_in(const std::string& text);

/// Replaces each field name in such a text by the result of `name`.
std::string renamed(const std::string& text,
                    const std::function<std::string(const std::string&)>& name);

}  // namespace petlab::reports
