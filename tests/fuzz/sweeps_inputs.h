#pragma once

#include <string_view>

namespace petlab::fuzz {

// Each function takes one input, accepts what its reader refuses, and throws std::logic_error if a
// property does not hold.

/// A line is refused, or is JSON and reads back as it was written.
void event_line(std::string_view input);
/// Every sweep file is refused with problems that name file and line, or gives valid trials.
void sweep_file(std::string_view input);
/// Every task declaration likewise; an accepted one survives trial.json.
void task_file(std::string_view input);
/// Every trial.json is refused, or reads back as it was written.
void trial_file(std::string_view input);
/// Every attempt.jsonl, decisions.jsonl and remarks.jsonl is read; each line is either understood
/// or reported with file and line, and understood lines read back.
void record_files(std::string_view input);
/// Every condition is refused, or its values have the type of a field.
void condition_text(std::string_view input);

}  // namespace petlab::fuzz
