#pragma once

#include <filesystem>

#include "results/remarks.h"
#include "results/store.h"

namespace petlab::orchestrator {

// On a network file system one process at a time may write a database. What a user decides or
// remarks while a run holds it is written to its file as always (decisions.jsonl, remarks.jsonl),
// and a file in runs/.inbox says to the run which trial or sweep has new lines. Both functions
// throw base::Error and std::filesystem::filesystem_error for files.

/// To be called after the lines are in their file.
void post_to_inbox(const std::filesystem::path& runs, const results::RemarkSubject& subject);

/// Stores all decisions and remarks of the posted trials and sweeps, then removes the posts. True
/// if there were any. Throws results::Error for the database.
bool read_inbox(results::Store& store, const std::filesystem::path& runs);

}  // namespace petlab::orchestrator
