#include "reports/losses.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "reports/names.h"
#include "results/loss_curve.h"

namespace petlab::reports {

bool wants_losses(const Definition& definition) {
  return selects(definition, "split", kProgressSplit);
}

void add_losses(const std::filesystem::path& database, const std::vector<std::string>& sweeps,
                Dataset& data) {
  const results::LossReader reader(database);
  std::unordered_map<std::string, std::vector<std::size_t>> places;  // by trial id
  for (std::size_t i = 0; i < data.trials.size(); ++i) places[data.trials[i].id].push_back(i);
  std::map<std::string, std::shared_ptr<const Series>> known;  // by tasks
  std::unordered_set<std::string> seen;  // a trial may belong to several sweeps
  const auto add = [&](const results::TrialLosses& losses) {
    if (!seen.insert(losses.trial_id).second) return;
    const auto of_trial = places.find(losses.trial_id);
    if (of_trial == places.end()) return;  // it has joined the sweep since
    for (const std::size_t place : of_trial->second) {
      const std::string tasks = fmt::format("{}", fmt::join(data.trials[place].tasks, ","));
      std::shared_ptr<const Series>& series = known[tasks];
      if (series == nullptr) {
        series = std::make_shared<const Series>(Series{kProgressSplit, tasks, kProgressLoss});
        data.known_words["task"].insert(tasks);
      }
      for (const results::LossPoint& point : losses.points) {
        data.scores.push_back({place, point.step, series, point.loss});
      }
    }
  };
  for (const std::string& sweep : sweeps) reader.each_of_sweep(sweep, add);
  data.known_words["name"].insert(kProgressLoss);
}

}  // namespace petlab::reports
