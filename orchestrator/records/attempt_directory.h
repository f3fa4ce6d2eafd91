#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "protocol/attempt.h"
#include "protocol/trial_directory.h"
#include "results/store.h"

namespace petlab::orchestrator {

// What only the orchestrator knows, in files, so that the database can be made anew from the runs
// folder (docs/reference/runs-folder.md). Each change is written to its file before
// it is stored in the database; only the number of a new attempt comes from the database first. All
// throw std::runtime_error naming the file or folder.

/// Makes the attempt's directory with `trial.json` and `attempt.jsonl` (its line `begun`) in it,
/// all or nothing for a killed process; not synced. Throws also where the directory exists. An open
/// attempt in the database that has no directory was claimed by an orchestrator that died right
/// then: Batch::forget_attempt.
/// `checkpoint`: the file that the attempt resumes from; empty: none. It is linked into the new
/// directory as resume->checkpoint, or copied (and synced) where it cannot be, so that the attempt
/// keeps it whatever its writer, which may live on, does with its own. False, and nothing is made,
/// where that file is there no more.
bool make_attempt_directory(const protocol::TrialDirectory& directory,
                            const protocol::TrialFile& trial, const protocol::AttemptBegun& begun,
                            const std::filesystem::path& checkpoint = {});

/// After a power cut: writes attempt.jsonl and trial.json of an attempt again, synced, where they
/// lack what the database has. Such a trial.json has configuration, digests and resume, not where
/// the data lay.
void restore_attempt_files(const results::Reader& known, const protocol::TrialDirectory& directory,
                           const results::AttemptFacts& facts);

/// Removes what a process that was killed in make_attempt_directory left of this attempt. Whoever
/// calls it knows that nobody makes the directory now.
void remove_unfinished_directories(const protocol::TrialDirectory& directory);

/// Whether a folder of that name in a trial's folder is an attempt's that make_attempt_directory
/// has not completed (".2.new-4711").
bool is_unfinished_directory(const std::string& name);

/// The highest attempt number that has a directory under runs/<trial id>; 0 where there is none.
std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id);

}  // namespace petlab::orchestrator
