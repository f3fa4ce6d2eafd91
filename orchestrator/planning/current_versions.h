#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/planning/plan.h"
#include "orchestrator/planning/worker_description.h"

namespace petlab::orchestrator {

/// The versions of what results depend on, as they are now, for commands that know a database and
/// its runs folder but no sweep file: the data of tasks is looked for where the trial.json of a
/// result says, and the numerics version counts for results of a worker of that name.
class CurrentVersions {
 public:
  /// `worker`: empty where none is known, and numerics are not compared. It is asked only
  /// when there is a result. `cache` as for known_data_digests.
  CurrentVersions(std::filesystem::path runs, WorkerCommand worker, std::filesystem::path cache);

  /// Sets `numerics` and `data_digests` of the context for this trial.
  void put_into(PlanContext& context, const results::TrialFacts& facts);

 private:
  std::filesystem::path runs_;
  WorkerCommand worker_;
  std::filesystem::path cache_;
  std::optional<WorkerDescription> described_;
  // By sweep: two may call different data by one name.
  std::map<std::string, std::map<std::string, std::string>> digests_;
  std::map<std::string, std::set<std::string>> looked_for_;
};

}  // namespace petlab::orchestrator
