#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/attempt.h"
#include "protocol/trial_directory.h"

namespace petlab::protocol {

// attempt.jsonl (docs/worker.md, "What petlab writes beside"): what an orchestrator knows of an
// attempt, so that the database can be made anew from the runs folder. Not synced: a power cut that
// takes lines back ends the attempt as well. All throw base::Error naming the file.

/// The first line, of a directory that is being made.
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

}  // namespace petlab::protocol
