#include "questions/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "metrics/metric_table.h"

namespace petlab::questions {
namespace {

// Absent if a score is undefined.
std::optional<double> mean_of(const metrics::ScoresByPair& scores) {
  double sum = 0;
  for (const auto& [pair, value] : scores) {
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(scores.size());
}

// The score of each side; absent if a side lacks the task or has an undefined score.
std::optional<std::vector<double>> scores_of_task(const std::vector<SideScores::Scores>& sides,
                                                  const std::string& metric,
                                                  const std::string& task, bool higher) {
  std::vector<double> scores;
  for (const SideScores::Scores& side : sides) {
    const auto of_metric = side.find(metric);
    if (of_metric == side.end()) return std::nullopt;
    const auto of_task = of_metric->second.find(task);
    if (of_task == of_metric->second.end()) return std::nullopt;
    const std::optional<double> mean = mean_of(of_task->second);
    if (!mean) return std::nullopt;
    scores.push_back(higher ? *mean : -*mean);
  }
  return scores;
}

// Assigns a letter to each group. A side in no group differs from all others and gets its own
// letter.
std::vector<std::string> letters(std::vector<std::vector<std::size_t>> groups, std::size_t sides) {
  for (std::size_t side = 0; side < sides; ++side) {
    const bool grouped = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::find(group.begin(), group.end(), side) != group.end();
    });
    if (!grouped) groups.push_back({side});
  }
  std::sort(groups.begin(), groups.end());
  std::vector<std::string> all(sides);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const std::string letter = group < 26 ? std::string(1, static_cast<char>('a' + group))
                                          : fmt::format("[{}]", group + 1);
    for (const std::size_t side : groups[group]) all[side] += letter;
  }
  return all;
}

// "a, b > c" by the groups of Wilcoxon's test; empty if groups overlap.
std::string order_text(const Ranking& ranking) {
  std::string text = ranking.sides.front();
  for (std::size_t side = 1; side < ranking.sides.size(); ++side) {
    if (ranking.wilcoxon[side].size() != ranking.wilcoxon.front().size()) return "";
    const auto begin = ranking.wilcoxon.begin();
    const auto first = std::find(begin, ranking.wilcoxon.end(), ranking.wilcoxon[side]) - begin;
    const bool same = ranking.wilcoxon[side] == ranking.wilcoxon[side - 1];
    if (!same && static_cast<std::size_t>(first) < side) return "";
    text += (same ? ", " : " > ") + ranking.sides[side];
  }
  return ranking.wilcoxon.front().size() > 1 ? "" : text;
}

Ranking ranking_of(const std::string& metric, const std::map<std::string, std::vector<double>>& by,
                   const std::vector<Side>& sides, double level) {
  Ranking ranking;
  ranking.metric = metric;
  std::vector<std::vector<double>> scores;
  for (const auto& [task, of_task] : by) {
    ranking.tasks.push_back(task);
    scores.push_back(of_task);
  }
  const std::vector<double> ranks = metrics::rank_variants(scores, level).average_ranks;
  std::vector<std::size_t> order(sides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
  std::vector<std::vector<double>> sorted(scores.size());
  for (const std::size_t side : order) {
    ranking.sides.push_back(sides[side].name);
    for (std::size_t task = 0; task < scores.size(); ++task) {
      sorted[task].push_back(scores[task][side]);
    }
  }
  ranking.ranks = metrics::rank_variants(sorted, level);
  ranking.nemenyi = letters(ranking.ranks.nemenyi_groups, sides.size());
  ranking.wilcoxon = letters(ranking.ranks.wilcoxon_groups, sides.size());
  return ranking;
}

}  // namespace

RankingResult rank(const results::ScoreReader& reader, const RankingRequest& request) {
  if (request.sides.size() < 3) {
    throw std::invalid_argument(
        fmt::format("ranks: found {} variants, expected at least 3", request.sides.size()));
  }
  std::vector<SideScores::Scores> sides;
  for (const Side& side : request.sides) {
    sides.push_back(SideScores(reader, request, side).scores());
  }
  RankingResult result;
  std::size_t most_tasks = 0;
  for (const auto& [metric, tasks] : sides.front()) {
    const std::optional<bool> higher = metrics::higher_is_better(metric);
    if (!higher) {
      result.notes.push_back(
          fmt::format("{} is left out: it is not known whether higher is better", metric));
      continue;
    }
    std::map<std::string, std::vector<double>> by_task;
    std::vector<std::string> left_out;
    for (const auto& [task, scores] : tasks) {
      if (auto found = scores_of_task(sides, metric, task, *higher)) {
        by_task.emplace(task, *std::move(found));
      } else {
        left_out.push_back(task);
      }
    }
    most_tasks = std::max(most_tasks, by_task.size());
    if (by_task.size() < 2) continue;
    if (!left_out.empty()) {
      result.notes.push_back(
          fmt::format("{}: left out without a defined score of every variant: {}", metric,
                      fmt::join(left_out, ", ")));
    }
    result.rankings.push_back(ranking_of(metric, by_task, request.sides, request.level));
  }
  if (result.rankings.empty()) {
    throw std::invalid_argument(fmt::format(
        "ranks: no metric has a score of every variant on 2 tasks; found {}", most_tasks));
  }
  for (const Ranking& one : result.rankings) {
    if (!one.ranks.friedman) continue;
    const std::string order = order_text(one);
    result.notes.push_back(fmt::format(
        "{}: Friedman's test over {} tasks gives p = {:.4f}; by Nemenyi's test, average ranks "
        "differ if they are more than {:.2f} apart{}{}",
        one.metric, one.tasks.size(), one.ranks.friedman->p, one.ranks.critical_difference,
        order.empty() ? "" : "; by Wilcoxon's test, ", order));
  }
  return result;
}

}  // namespace petlab::questions
