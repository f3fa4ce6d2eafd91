#pragma once

#include <string_view>

namespace petlab::fuzz {

// What the fuzz programs do with one input; each throws std::logic_error where a property of
// sweeps' readers does not hold, and lets pass what the readers themselves refuse.

/// A line is parsed exactly where it is JSON, and reads back from what it is written as.
void event_line(std::string_view input);
/// Every sweep file is refused with problems that name file and line, or gives valid trials.
void sweep_file(std::string_view input);
/// Every task declaration likewise; an accepted one survives trial.json.
void task_file(std::string_view input);
/// Every trial.json is refused, or reads back from what it is written as.
void trial_file(std::string_view input);
/// Every attempt.jsonl, decisions.jsonl and remarks.jsonl is read; each line is either understood
/// or reported with file and line, and what is understood reads back.
void record_files(std::string_view input);
/// Every condition is refused, or its values have the type of a field.
void condition_text(std::string_view input);

}  // namespace petlab::fuzz
