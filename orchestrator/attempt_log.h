#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/attempt.h"
#include "results/store.h"
#include "sweeps/trial_directory.h"

namespace petlab::orchestrator {

// What only the orchestrator knows, in files, so that the database can be made anew from the runs
// folder (docs/worker.md, "What petlab writes beside"). The files are written before the database,
// but for `begun`: there the database gives the number first.

/// Makes the attempt's directory and writes the line `begun` of attempt.jsonl. Throws
/// std::runtime_error naming the folder; also where the directory exists already.
void begin_attempt_log(const sweeps::TrialDirectory& directory, const results::NewAttempt& begun);
/// Append `launched`, `ended`. Not synced.
void log_launch(const sweeps::TrialDirectory& directory, const results::Launch& launch);
void log_ending(const sweeps::TrialDirectory& directory, const results::Ending& ending);

/// attempt.jsonl, read back. A last line without newline and lines that are no JSON are left out.
struct AttemptLog {
  std::optional<results::NewAttempt> begun;
  std::optional<results::Launch> launch;
  std::optional<results::Ending> ending;  // the first
};
AttemptLog read_attempt_log(const sweeps::TrialDirectory& directory);

/// The highest attempt number that has a directory under runs/<trial id>; 0 where there is none.
std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id);

/// The user's decisions on a trial (cancel, retry): appended to runs/<trial id>/decisions.jsonl and
/// synced, then stored in a transaction of its own.
void cancel_trial(results::Store& store, const std::filesystem::path& runs,
                  const std::string& trial_id, bool cancelled, double time);
void retry_trial(results::Store& store, const std::filesystem::path& runs,
                 const std::string& trial_id, std::int64_t after_attempt, double time);

/// Writes runs/sweeps/<name>.jsonl (temporary name, synced, renamed; left alone where it says the
/// same already), then stores the sweep in a transaction of its own.
void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time);

}  // namespace petlab::orchestrator
