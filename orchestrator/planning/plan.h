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
  std::string sweep;           // name: finished by another is cached
  /// Attempts that may crash or stall beyond the first before a trial has failed.
  /// Absent: as the trial's last attempt was begun with.
  std::optional<std::int64_t> retries;
  /// The worker's numerics version (`--describe`); empty: not known, nothing is stale for it.
  std::string numerics;
  /// By task; a task that is missing here is not compared.
  std::map<std::string, std::string> data_digests;
  /// Of an open attempt.
  std::function<Liveness(const results::AttemptFacts&)> liveness;
};

/// Where a trial is, why, and how it goes on.
struct TrialPlan {
  sweeps::TrialState state = sweeps::TrialState::fresh;
  std::string why;
  std::int64_t planned_from = 0;           // TrialFacts::changes: what a claim by it states
  std::int64_t latest = 0;                 // highest attempt number known
  std::int64_t failures = 0;               // attempts that count against the limit
  std::int64_t retries = 0;                // that limit, for a claim to remember
  std::optional<protocol::Resume> resume;  // the checkpoint from which it would go on
  std::string last_lines;                  // of the log of the last attempt, where it failed
  bool ran_out_of_memory = false;          // so it is to have a device for itself
  bool files_gone = false;                 // of the attempt with the result
};

/// Trials whose facts are in memory at once.
inline constexpr std::size_t kPlannedAtOnce = 4096;

/// Decides from what the database knows. Looks at checkpoint files, directories and locks, touches
/// nothing.
TrialPlan plan_trial(const sweeps::TrialConfig& config, const results::TrialFacts& facts,
                     const PlanContext& context);

/// True for the states that `petlab run` works on without being asked: new, interrupted.
bool is_work(sweeps::TrialState state);

/// The digests of the tasks' data where their files are found; remembered under `cache`.
std::map<std::string, std::string> known_data_digests(
    const std::map<std::string, sweeps::TaskDeclaration>& tasks,
    const std::vector<std::filesystem::path>& data_folders, const std::filesystem::path& cache);

/// How many trials with a result were members of the sweep as the database knows it, and are none
/// of what its file says now.
std::int64_t finished_former_members(const results::Reader& reader, const sweeps::Sweep& sweep);

/// What `petlab plan` and `petlab run` say of them; empty where there are none.
std::string former_members_text(std::int64_t finished, const std::string& sweep);

}  // namespace petlab::orchestrator
