#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// Whether `field` belongs to a metric's value (split, step, name) and not to its trial. `task`
/// belongs to both: a trial has tasks, a value has one of them.
bool is_score_field(const std::string& field);

using results::number_in;

/// As people read it: `0.5`, `true` stays 1, NULL is `—`.
std::string to_text(const results::Value& value);

/// The trial's field; NULL where it has none of that name.
const results::Value& field_of(const Trial& trial, const std::string& field);

/// Whether the conditions on the trial's own fields (and, of its tasks, one) hold.
bool matches(const Selection& selection, const Trial& trial);

/// Whether the conditions on split, name and task hold.
bool matches(const Selection& selection, const Series& series);

/// Whether the conditions on the task hold.
bool selects_task(const Selection& selection, const std::string& task);

/// Whether the conditions on the task and the split hold.
bool selects(const Selection& selection, const std::string& task, const std::string& split);

/// Whether the conditions on split, step, name and task hold.
bool matches(const Selection& selection, const Score& score);

/// The condition on the step that comes first; nullptr: there is none.
const Condition* step_condition(const std::vector<const Selection*>& selections);

/// The steps that such a condition lists, ascending, each once.
std::vector<std::int64_t> steps_of(const Condition& condition);

/// `{field}` in `text` replaced by the trial's values; `{field*100}` multiplies a number, and
/// `{field|88}` or `{field*100|100}` gives what stands for NULL.
std::string filled(const std::string& text, const Trial& trial);

/// The fields in braces of such a text.
std::vector<std::string> fields_in(const std::string& text);

/// The text with each of them replaced by what `name` makes of it.
std::string renamed(const std::string& text,
                    const std::function<std::string(const std::string&)>& name);

}  // namespace petlab::reports
