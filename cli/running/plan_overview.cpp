#include "cli/running/plan_overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shown.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/running/run_sweep.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {

PlanOverview plan_overview(const std::vector<std::string>& files, const SweepArguments& arguments,
                           const sweeps::Locations& locations,
                           const sweeps::Environment& environment,
                           const orchestrator::WorkerCommand& worker,
                           std::optional<std::int64_t> retries) {
  PlanOverview overview;
  std::map<std::string, bool> is_open;  // whether a trial is to be trained, by id
  for (const std::string& file : files) {
    SweepArguments one = arguments;
    one.file = file;
    const sweeps::Sweep sweep = one.load(locations, environment);
    const std::vector<orchestrator::TrialPlan> plans = orchestrator::plan_sweep(
        sweep, locations, environment, one.database_path(), one.runs_path(), worker, retries);
    PlanOverview::Row& row = overview.rows.emplace_back();
    row.file = file;
    row.sweep = sweep.name;
    row.notes = sweep.notes;
    row.trials = static_cast<std::int64_t>(plans.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const bool open = orchestrator::is_work(plans[i].state);
      row.to_train += open ? 1 : 0;
      const auto [known, is_new] = is_open.emplace(sweep.trials[i].id.value, open);
      row.shared += is_new ? 0 : 1;
      known->second = known->second && open;
    }
  }
  overview.trials = static_cast<std::int64_t>(is_open.size());
  overview.to_train =
      std::count_if(is_open.begin(), is_open.end(), [](const auto& trial) { return trial.second; });
  return overview;
}

void print_overview(std::ostream& out, const PlanOverview& overview, bool json) {
  if (json) {
    nlohmann::ordered_json document = {{"sweeps", nlohmann::ordered_json::array()},
                                       {"trials", overview.trials},
                                       {"to_train", overview.to_train}};
    for (const PlanOverview::Row& row : overview.rows) {
      document["sweeps"].push_back({{"sweep", row.sweep},
                                    {"file", row.file},
                                    {"trials", row.trials},
                                    {"shared", row.shared},
                                    {"to_train", row.to_train},
                                    {"notes", row.notes}});
    }
    out << document.dump(1) << "\n";
    return;
  }
  std::size_t widest = 5;
  for (const PlanOverview::Row& row : overview.rows) widest = std::max(widest, row.sweep.size());
  out << fmt::format("{:<{}}  {:>7}  {:>6}  {:>8}  file\n", "sweep", widest, "trials", "shared",
                     "to train");
  for (const PlanOverview::Row& row : overview.rows) {
    out << fmt::format("{:<{}}  {:>7}  {:>6}  {:>8}  {}\n", row.sweep, widest, row.trials,
                       row.shared, row.to_train, row.file);
    for (const std::string& note : row.notes) out << "note: " << base::printable(note) << "\n";
  }
  out << fmt::format("in total, counting equal trials once: {} {}, {} to train\n", overview.trials,
                     overview.trials == 1 ? "trial" : "trials", overview.to_train);
}

}  // namespace petlab::cli
