#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/trial_directory.h"
#include "results/attempt.h"
#include "results/store.h"

namespace petlab::orchestrator {

// What only the orchestrator knows, in files, so that the database can be made anew from the runs
// folder (docs/worker.md, "What petlab writes beside"). Each change is written to its file before
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
                            const protocol::TrialFile& trial, const results::NewAttempt& begun,
                            const std::filesystem::path& checkpoint = {});

/// Removes what a process that was killed in make_attempt_directory left of this attempt. Whoever
/// calls it knows that nobody makes the directory now.
void remove_unfinished_directories(const protocol::TrialDirectory& directory);

/// Append `launched`, `ended` to attempt.jsonl. Not synced: a power cut that takes them back ends
/// the attempt as well.
void log_launch(const protocol::TrialDirectory& directory, const results::Launch& launch);
void log_ending(const protocol::TrialDirectory& directory, const results::Ending& ending);

/// attempt.jsonl, read back. Missing file: nothing. A last line without newline is left out, and so
/// are lines that are not understood.
struct AttemptLog {
  std::optional<results::NewAttempt> begun;
  std::optional<results::Launch> launch;  // the last
  std::optional<results::Ending> ending;  // the first
  std::vector<std::string> left_out;      // "FILE:LINE: why", of lines that are not understood
};
AttemptLog read_attempt_log(const protocol::TrialDirectory& directory);

/// The highest attempt number that has a directory under runs/<trial id>; 0 where there is none.
std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id);

/// A decision of the user on a trial: a line of runs/<trial id>/decisions.jsonl.
struct Decision {
  enum class What { cancel, uncancel, retry };
  What what = What::cancel;
  std::int64_t after_attempt = 0;  // retry: failures up to this attempt no longer count
  double time = 0;
  bool operator==(const Decision&) const = default;
};
/// Appends the line and syncs it, then stores it in a transaction of its own.
void decide(results::Store& store, const std::filesystem::path& runs, const std::string& trial_id,
            const Decision& decision);
/// The part of decide() that stores.
void store_decision(results::Batch& batch, const std::string& trial_id, const Decision& decision);
/// `left_out`, where given, gets "FILE:LINE: why" of each line that is not understood.
std::vector<Decision> read_decisions(const std::filesystem::path& runs, const std::string& trial_id,
                                     std::vector<std::string>* left_out = nullptr);

/// Writes runs/sweeps/<name>.jsonl (temporary name, synced, renamed), then stores the sweep in a
/// transaction of its own. The last sweep of a name counts; trials that it has no more stay known.
/// A file that says the same already only gets the new time.
void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time);

/// What record_sweep wrote.
struct SweepFile {
  results::SweepRow sweep;
  std::vector<results::TrialRow> trials;
  double time = 0;
};
/// Throws also where it is no such file.
SweepFile read_sweep_file(const std::filesystem::path& file);

}  // namespace petlab::orchestrator
