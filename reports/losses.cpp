#include "reports/losses.h"

#include <map>

#include "reports/names.h"
#include "results/loss_curve.h"

namespace petlab::reports {

bool wants_losses(const Definition& definition) {
  return selects(definition, "split", kProgressSplit);
}

void add_losses(const std::filesystem::path& database, const std::vector<std::string>& sweeps,
                Dataset& data) {
  const results::LossReader reader(database);
  std::map<std::string, std::vector<results::LossPoint>> by_trial;
  for (const std::string& sweep : sweeps) {
    for (results::TrialLosses& one : reader.of_sweep(sweep)) {
      by_trial[one.trial_id] = std::move(one.points);
    }
  }
  for (std::size_t i = 0; i < data.trials.size(); ++i) {
    const auto found = by_trial.find(data.trials[i].id);
    if (found == by_trial.end()) continue;
    std::string tasks;
    for (const std::string& task : data.trials[i].tasks) {
      tasks += (tasks.empty() ? "" : ",") + task;
    }
    for (const results::LossPoint& point : found->second) {
      data.scores.push_back({i, point.step, kProgressSplit, tasks, kProgressLoss, point.loss});
    }
    data.known_words["task"].insert(tasks);
  }
  data.known_words["name"].insert(kProgressLoss);
}

}  // namespace petlab::reports
