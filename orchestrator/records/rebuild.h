#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "protocol/attempt_log.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// The result of ingest_runs.
struct RunsSummary {
  std::int64_t sweeps = 0;
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t events = 0;
  /// Unreadable files and folders that were skipped, with the reason.
  std::vector<std::string> left_out;
};

/// Which attempts' configurations (trial.json) to read: only those of trials that are in no sweep's
/// file and have no earlier attempt, or all. With `all`, an attempt with an unreadable file is
/// reported and left out.
enum class Configurations { unknown, all };

/// Adds everything in a runs folder that the database lacks: sweeps, trials, attempts, events,
/// decisions and remarks. Repeating it changes nothing. Calls `progress` occasionally with the
/// counts so far. Throws results::Error, and std::runtime_error if `runs` cannot be read.
RunsSummary ingest_runs(results::Store& store, const std::filesystem::path& runs,
                        const std::function<void(const RunsSummary&)>& progress = {},
                        Configurations read = Configurations::unknown);

/// Stores an attempt's files except for its events. Its trial must be recorded. Returns the
/// existing row if there is one.
results::AttemptRef store_attempt(results::Batch& batch, const protocol::TrialDirectory& directory,
                                  const protocol::AttemptLog& log);

/// Rebuilds `database` from a runs folder, under a temporary name until it is complete. It equals
/// the original database except for times of sweeps and notes. Throws std::invalid_argument if
/// `database` exists, otherwise as ingest_runs.
RunsSummary rebuild(const std::filesystem::path& runs, const std::filesystem::path& database,
                    const std::function<void(const RunsSummary&)>& progress = {});

}  // namespace petlab::orchestrator
