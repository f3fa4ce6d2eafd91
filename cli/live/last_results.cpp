#include "cli/live/last_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "results/error.h"
#include "results/scores.h"

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
  // Values by split, then by task and name.
  std::map<std::string, std::map<std::pair<std::string, std::string>, std::optional<double>>> found;
  try {
    results::ScoreQuestion question;
    question.where = {{results::word_named("trial_id"), results::Condition::Op::equal, {trial_id}}};
    question.splits = {"validation", "test"};
    results::ScoreReader(database_).each(question, [&](const results::ScoredTrial& scored) {
      for (const results::Score& score : scored.scores()) {
        const auto& [key, split, task, name] = *score.series;
        found[split][{task, name}] = score.value;
      }
    });
  } catch (const results::Error&) {
    return result;  // the run reports problems with its database
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
