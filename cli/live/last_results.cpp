#include "cli/live/last_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "results/error.h"
#include "results/query.h"

namespace petlab::cli {

void LastResults::add(const std::string& trial_id) {
  new_.push_back(trial_id);
  if (new_.size() > kMost) new_.pop_front();
}

const std::vector<LiveResult>& LastResults::look() {
  for (; !new_.empty(); new_.pop_front()) {
    std::erase_if(last_, [&](const LiveResult& one) { return one.trial_id == new_.front(); });
    last_.push_back(read(new_.front()));
  }
  if (last_.size() > kMost) last_.erase(last_.begin(), last_.end() - kMost);
  return last_;
}

LiveResult LastResults::read(const std::string& trial_id) const {
  LiveResult result{trial_id, {}, {}};
  const auto trial =
      std::find_if(sweep_.trials.begin(), sweep_.trials.end(),
                   [&](const sweeps::SweepTrial& one) { return one.id.value == trial_id; });
  if (trial == sweep_.trials.end()) return result;
  result.variant = fmt::format("{}", fmt::join(trial->variants, ", "));
  // By split, task and name; the last step comes last.
  std::map<std::string, std::map<std::pair<std::string, std::string>, std::optional<double>>> found;
  try {
    const results::QueryResult rows = results::query(
        database_,
        "SELECT split, task, name, value FROM results WHERE trial_id = ?1 AND split != 'train' "
        "ORDER BY step, attempt, seq",
        {trial_id});
    for (const std::vector<results::Value>& row : rows.rows) {
      const auto* value = std::get_if<double>(&row[3]);
      found[std::get<std::string>(row[0])]
           [{std::get<std::string>(row[1]), std::get<std::string>(row[2])}] =
               value == nullptr ? std::nullopt : std::optional(*value);
    }
  } catch (const results::Error&) {
    return result;  // the run itself says what is wrong with its database
  }
  const auto& scores = found.contains("test") ? found["test"] : found["validation"];
  for (const std::string& task : trial->config.tasks) {
    const auto declared = sweep_.tasks.find(task);
    const bool known = declared != sweep_.tasks.end() && !declared->second.select_by.empty();
    auto score = known ? scores.find({task, declared->second.select_by.front()}) : scores.end();
    if (score == scores.end()) {
      score = std::find_if(scores.begin(), scores.end(),
                           [&](const auto& one) { return one.first.first == task; });
    }
    if (score != scores.end()) result.scores.push_back({task, score->first.second, score->second});
  }
  return result;
}

}  // namespace petlab::cli
