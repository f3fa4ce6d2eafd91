#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/planning/plan.h"
#include "orchestrator/planning/worker_description.h"

namespace petlab::orchestrator {

/// The current versions of what results depend on, for commands that have a database and its runs
/// folder but no sweep file. The trial.json of a result locates the data of its tasks. The numerics
/// version applies to results of a worker of the same name.
class CurrentVersions {
 public:
  /// `worker`: empty if unknown; numerics are then not compared. It is only started if there is a
  /// result. `cache`: as for known_data_digests().
  CurrentVersions(std::filesystem::path runs, WorkerCommand worker, std::filesystem::path cache);

  /// Sets `numerics` and `data_digests` of the context for this trial.
  void put_into(PlanContext& context, const results::TrialFacts& facts);

 private:
  std::filesystem::path runs_;
  WorkerCommand worker_;
  std::filesystem::path cache_;
  std::optional<WorkerDescription> described_;
  // By sweep, since two sweeps may use one name for different data.
  std::map<std::string, std::map<std::string, std::string>> digests_;
  std::map<std::string, std::set<std::string>> looked_for_;
};

}  // namespace petlab::orchestrator
