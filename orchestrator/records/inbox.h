#pragma once

#include <filesystem>

#include "results/remarks.h"
#include "results/store.h"

namespace petlab::orchestrator {

// On a network file system only one process at a time may write a database. While a run holds it,
// decisions and remarks are written to their files as usual (decisions.jsonl, remarks.jsonl), and a
// post in runs/.inbox names the trial or sweep with new lines. The run stores them. Both functions
// throw base::Error and std::filesystem::filesystem_error for files.

/// Call this after the lines were written to their file.
void post_to_inbox(const std::filesystem::path& runs, const results::RemarkSubject& subject);

/// Stores all decisions and remarks of the posted trials and sweeps, then removes the posts.
/// Returns true if there were any. Throws results::Error for the database.
bool read_inbox(results::Store& store, const std::filesystem::path& runs);

}  // namespace petlab::orchestrator
