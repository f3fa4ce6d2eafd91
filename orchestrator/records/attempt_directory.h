#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "protocol/attempt.h"
#include "protocol/trial_directory.h"
#include "results/store.h"

namespace petlab::orchestrator {

// Files with the orchestrator's knowledge, from which the database can be rebuilt
// (docs/reference/runs-folder.md). Each change is written to its file before it is stored in the
// database; only the number of a new attempt comes from the database first. All functions throw
// std::runtime_error naming the file or folder.

/// Creates the attempt's folder with `trial.json` and `attempt.jsonl` (its line `begun`). A killed
/// process leaves the whole folder or none; it is not synced. Throws if the folder exists. An open
/// attempt of the database without a folder was claimed by an orchestrator that died before
/// creating it: Batch::forget_attempt.
/// `checkpoint`: the file that the attempt resumes from; empty: none. It is linked into the new
/// folder as resume->checkpoint, or copied and synced if it cannot be linked, so that its writer,
/// which may still be alive, cannot remove it. Returns false and creates nothing if that file no
/// longer exists.
bool make_attempt_directory(const protocol::TrialDirectory& directory,
                            const protocol::TrialFile& trial, const protocol::AttemptBegun& begun,
                            const std::filesystem::path& checkpoint = {});

/// Asks the attempt's worker to stop this trial alone (TrialDirectory::stop). Returns false if the
/// file cannot be created.
bool request_stop(const protocol::TrialDirectory& directory);

/// Rewrites an attempt's attempt.jsonl and trial.json, synced, if a power failure lost contents
/// that the database has. A restored trial.json has the configuration, digests and resume, but no
/// data folders.
void restore_attempt_files(const results::Reader& known, const protocol::TrialDirectory& directory,
                           const results::AttemptFacts& facts);

/// Removes an attempt's incomplete folders, left by processes killed in make_attempt_directory. The
/// caller must ensure that no process is creating the folder.
void remove_unfinished_directories(const protocol::TrialDirectory& directory);

/// True for the temporary name of an attempt's folder (".2.new-4711"), which is renamed when
/// complete.
bool is_unfinished_directory(const std::string& name);

/// The highest attempt number with a folder in runs/<trial id>, or 0.
std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id);

}  // namespace petlab::orchestrator
