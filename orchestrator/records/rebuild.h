#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "protocol/attempt_log.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What ingest_runs found.
struct RunsSummary {
  std::int64_t sweeps = 0;
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t events = 0;
  /// Files and folders that could not be understood, each with the reason; they were left out.
  std::vector<std::string> left_out;
};

/// Which attempts' configurations (trial.json) are read: those of trials that no sweep's file and
/// no earlier attempt tells of, or all, so that one that cannot be understood is noticed and its
/// attempt left out.
enum class Configurations { unknown, all };

/// Reads everything of a runs folder into the database that is not there yet: sweeps, trials,
/// attempts, events, decisions. Repeating it changes nothing. `progress` is called now and then
/// with what was found so far. Throws results::Error, and std::runtime_error where `runs` cannot be
/// read.
RunsSummary ingest_runs(results::Store& store, const std::filesystem::path& runs,
                        const std::function<void(const RunsSummary&)>& progress = {},
                        Configurations read = Configurations::unknown);

/// Stores what the files of an attempt say but its events; its trial is recorded. The same row
/// where it is there.
results::AttemptRef store_attempt(results::Batch& batch, const protocol::TrialDirectory& directory,
                                  const protocol::AttemptLog& log);

/// Makes `database` anew from a runs folder: under a temporary name first, so that it exists
/// complete or not at all. It equals the one that the runs were recorded in but for times of sweeps
/// and notes. Throws std::invalid_argument where `database` exists, else as ingest_runs.
RunsSummary rebuild(const std::filesystem::path& runs, const std::filesystem::path& database,
                    const std::function<void(const RunsSummary&)>& progress = {});

}  // namespace petlab::orchestrator
