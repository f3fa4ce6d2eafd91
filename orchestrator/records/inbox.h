#pragma once

#include <filesystem>
#include <vector>

#include "results/remarks.h"
#include "results/store.h"

namespace petlab::orchestrator {

// A post in runs/.inbox names trials and sweeps with new lines in their files of decisions and
// remarks. It is written before the lines and removed after the commit, so that the next run stores
// what a killed process or a power cut left in the files only. On a network file system only one
// process at a time may write a database: while a run holds it, other processes leave the commit to
// that run by another post after the lines. Both functions throw base::Error and
// std::filesystem::filesystem_error for files.

/// Returns the post's file, to be removed after the commit.
std::filesystem::path post_to_inbox(const std::filesystem::path& runs,
                                    const std::vector<results::RemarkSubject>& subjects);

/// Stores all decisions and remarks of the posted trials and sweeps, then removes the posts.
/// Returns true if there were any. Throws results::Error for the database.
bool read_inbox(results::Store& store, const std::filesystem::path& runs);

}  // namespace petlab::orchestrator
