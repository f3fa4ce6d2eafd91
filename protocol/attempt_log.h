#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/attempt.h"
#include "protocol/trial_directory.h"

namespace petlab::protocol {

// attempt.jsonl (docs/reference/runs-folder.md): an orchestrator's knowledge of an attempt, from
// which the database can be rebuilt. `begun` and `launched` are not synced; if a power failure
// removes them, the next run restores them from the database (write_attempt_log). `ended` is synced
// together with the lines before it, so the database never has an end that the file lost. All
// functions throw base::Error naming the file.

/// Writes the first line while the attempt's folder is being created.
void log_begun(const std::filesystem::path& file, const AttemptBegun& begun);
/// Append `launched` or `ended`.
void log_launch(const TrialDirectory& directory, const Launch& launch);
void log_ending(const TrialDirectory& directory, const Ending& ending);

/// The contents of attempt.jsonl; empty if the file is missing. Skips an incomplete last line and
/// invalid lines.
struct AttemptLog {
  std::optional<AttemptBegun> begun;
  std::optional<Launch> launch;       // the last one
  std::optional<Ending> ending;       // the first one
  std::vector<std::string> left_out;  // "FILE:LINE: why" for each invalid line
};
AttemptLog read_attempt_log(const TrialDirectory& directory);

/// Replaces attempt.jsonl, atomically and synced.
void write_attempt_log(const TrialDirectory& directory, const AttemptLog& log);

}  // namespace petlab::protocol
