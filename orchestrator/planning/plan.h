#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/recovery/evidence.h"
#include "protocol/trial_directory.h"
#include "results/attempt.h"
#include "results/store.h"
#include "sweeps/sweep_file.h"
#include "sweeps/trial_state.h"

namespace petlab::orchestrator {

/// What a trial's state depends on besides the sweep and the database.
struct PlanContext {
  std::filesystem::path runs;  // absolute
  std::string sweep;           // its name; a result of another sweep is cached
  /// Attempts that may crash or stall, after the first one, before a trial has failed. Absent: the
  /// limit of the trial's last attempt.
  std::optional<std::int64_t> retries;
  /// The worker's numerics version (`--describe`); empty: unknown, so no result is stale because of
  /// it.
  std::string numerics;
  /// Digests by task. The data of a task that is missing here is not compared.
  std::map<std::string, std::string> data_digests;
  /// Determines whether an open attempt is alive.
  std::function<Liveness(const results::AttemptFacts&)> liveness;
};

/// A trial's state, the reason for it, and how to continue.
struct TrialPlan {
  sweeps::TrialState state = sweeps::TrialState::fresh;
  std::string why;
  std::int64_t planned_from = 0;           // TrialFacts::changes, which a claim must match
  std::int64_t latest = 0;                 // highest attempt number known
  std::int64_t failures = 0;               // attempts that count against the limit
  std::int64_t retries = 0;                // that limit, which a claim records
  std::optional<protocol::Resume> resume;  // the checkpoint to resume from
  std::string last_lines;                  // of the last attempt's log, if it failed
  bool ran_out_of_memory = false;          // so it needs a device for itself
  bool is_to_be_alone = false;             // its last attempt failed with its gang
  bool files_gone = false;                 // of the attempt with the result
  /// How the code that it ran differs from the worker's present code (code_changes()); absent:
  /// unknown.
  std::optional<std::vector<std::string>> code_changes;
};

/// The number of trials whose facts are in memory at the same time.
inline constexpr std::size_t kPlannedAtOnce = 4096;

/// Plans a trial from its facts in the database. Reads checkpoint files, directories and locks;
/// changes nothing.
TrialPlan plan_trial(const sweeps::TrialConfig& config, const results::TrialFacts& facts,
                     const PlanContext& context);

/// True for the states of trials that `petlab run` runs by default: new and interrupted.
bool is_work(sweeps::TrialState state);

/// Returns the data digests of the tasks whose files exist. `cache`: folder in which digests are
/// cached.
std::map<std::string, std::string> known_data_digests(
    const std::map<std::string, sweeps::TaskDeclaration>& tasks,
    const std::vector<std::filesystem::path>& data_folders, const std::filesystem::path& cache);

/// Counts the trials with a result that are members of the sweep in the database but no longer in
/// its file.
std::int64_t finished_former_members(const results::Reader& reader, const sweeps::Sweep& sweep);

/// The note of `petlab plan` and `petlab run` about these trials; empty if there are none.
std::string former_members_text(std::int64_t finished, const std::string& sweep);

}  // namespace petlab::orchestrator
