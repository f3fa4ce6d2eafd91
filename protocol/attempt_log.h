#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/attempt.h"
#include "protocol/trial_directory.h"

namespace petlab::protocol {

// attempt.jsonl (docs/reference/runs-folder.md): what an orchestrator knows of an
// attempt, so that the database can be rebuilt from the runs folder. A power cut may take `begun`
// and `launched` back, which are not synced: the database has them, and the next run writes them
// again (write_attempt_log). `ended` is synced, with every line before it, so the database never
// has an end that the file lost. All functions throw base::Error naming the file.

/// Writes the first line, of a directory that is being made.
void log_begun(const std::filesystem::path& file, const AttemptBegun& begun);
/// Append `launched`, `ended`.
void log_launch(const TrialDirectory& directory, const Launch& launch);
void log_ending(const TrialDirectory& directory, const Ending& ending);

/// attempt.jsonl, read back. Missing file: nothing. A last line without newline is left out, and so
/// are lines that are not understood.
struct AttemptLog {
  std::optional<AttemptBegun> begun;
  std::optional<Launch> launch;       // the last
  std::optional<Ending> ending;       // the first
  std::vector<std::string> left_out;  // "FILE:LINE: why", of lines that are not understood
};
AttemptLog read_attempt_log(const TrialDirectory& directory);

/// Replaces attempt.jsonl by what `log` holds, atomically and synced.
void write_attempt_log(const TrialDirectory& directory, const AttemptLog& log);

}  // namespace petlab::protocol
