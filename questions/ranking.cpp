#include "questions/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "metrics/metric_table.h"
#include "metrics/seed_statistics.h"

namespace petlab::questions {
namespace {

constexpr std::size_t kFewestSides = 3;
constexpr std::size_t kFewestTasks = 2;

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
std::optional<std::vector<double>> means_of(const RankedTask& task) {
  std::vector<double> means;
  for (const metrics::ScoresByPair& scores : task.scores) {
    if (scores.empty()) return std::nullopt;
    const std::optional<double> mean = mean_of(scores);
    if (!mean) return std::nullopt;
    means.push_back(task.higher_is_better ? *mean : -*mean);
  }
  return means;
}

// Empty if the side lacks the metric or the task.
metrics::ScoresByPair scores_on(const SideScores::Scores& side, const std::string& metric,
                                const std::string& task) {
  const auto of_metric = side.find(metric);
  if (of_metric == side.end()) return {};
  const auto of_task = of_metric->second.find(task);
  return of_task == of_metric->second.end() ? metrics::ScoresByPair() : of_task->second;
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

// Why these sides and tasks cannot be ranked; empty if they can.
std::string why_no_ranks(std::size_t sides, std::size_t tasks) {
  if (sides < kFewestSides) {
    return fmt::format("found {} variants, expected at least {}", sides, kFewestSides);
  }
  if (tasks < kFewestTasks) {
    return fmt::format("found {} {} with a defined score of every variant, expected at least {}",
                       tasks, tasks == 1 ? "task" : "tasks", kFewestTasks);
  }
  if (tasks > metrics::kMaxWilcoxonPairs) {
    return fmt::format("found {} tasks, expected at most {}", tasks, metrics::kMaxWilcoxonPairs);
  }
  return "";
}

}  // namespace

Ranking rank_over_tasks(const std::vector<std::string>& sides, const std::vector<RankedTask>& tasks,
                        double level) {
  Ranking ranking;
  ranking.level = level;
  std::vector<std::vector<double>> scores;
  for (const RankedTask& task : tasks) {
    auto means = means_of(task);
    (means ? ranking.tasks : ranking.left_out).push_back(task.name);
    if (means) scores.push_back(*std::move(means));
  }
  ranking.missing = why_no_ranks(sides.size(), scores.size());
  if (!ranking.missing.empty()) return ranking;
  const std::vector<double> ranks = metrics::rank_variants(scores, level).average_ranks;
  ranking.order.resize(sides.size());
  std::iota(ranking.order.begin(), ranking.order.end(), 0);
  std::stable_sort(ranking.order.begin(), ranking.order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
  std::vector<std::vector<double>> sorted(scores.size());
  for (const std::size_t side : ranking.order) {
    ranking.sides.push_back(sides[side]);
    for (std::size_t task = 0; task < scores.size(); ++task) {
      sorted[task].push_back(scores[task][side]);
    }
  }
  ranking.ranks = metrics::rank_variants(sorted, level);
  ranking.differs = ranking.ranks.friedman && ranking.ranks.friedman->p <= level;
  if (!ranking.differs) {
    std::vector<std::size_t> all(sides.size());
    std::iota(all.begin(), all.end(), 0);
    ranking.ranks.nemenyi_groups = ranking.ranks.wilcoxon_groups = {all};
  }
  ranking.nemenyi = letters(ranking.ranks.nemenyi_groups, sides.size());
  ranking.wilcoxon = letters(ranking.ranks.wilcoxon_groups, sides.size());
  return ranking;
}

RankingResult rank(const results::ScoreReader& reader, const RankingRequest& request) {
  if (request.sides.size() < kFewestSides) {
    throw std::invalid_argument("ranks: " + why_no_ranks(request.sides.size(), 0));
  }
  std::vector<std::string> names;
  std::vector<SideScores::Scores> sides;
  for (const Side& side : request.sides) {
    names.push_back(side.name);
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
    std::vector<RankedTask> ranked;
    for (const auto& [task, scores] : tasks) {
      RankedTask& one = ranked.emplace_back(RankedTask{task, *higher, {}});
      for (const SideScores::Scores& side : sides) {
        one.scores.push_back(scores_on(side, metric, task));
      }
    }
    Ranking ranking = rank_over_tasks(names, ranked, request.level);
    most_tasks = std::max(most_tasks, ranking.tasks.size());
    if (ranking.tasks.size() < kFewestTasks) continue;
    if (!ranking.missing.empty()) {
      throw std::invalid_argument(fmt::format("ranks: {}: {}", metric, ranking.missing));
    }
    if (!ranking.left_out.empty()) {
      result.notes.push_back(
          fmt::format("{}: left out without a defined score of every variant: {}", metric,
                      fmt::join(ranking.left_out, ", ")));
    }
    ranking.metric = metric;
    result.rankings.push_back(std::move(ranking));
  }
  if (result.rankings.empty()) {
    throw std::invalid_argument(fmt::format(
        "ranks: no metric has a score of every variant on 2 tasks; found {}", most_tasks));
  }
  for (const Ranking& one : result.rankings) {
    result.notes.push_back(one.metric + ": " + tests_text(one));
  }
  return result;
}

std::string p_text(double p) { return p < 0.0001 ? "p < 0.0001" : fmt::format("p = {:.4f}", p); }

std::string friedman_text(const Ranking& ranking) {
  const std::size_t tasks = ranking.tasks.size();
  if (!ranking.ranks.friedman) {
    return fmt::format("all variants are equal on each of the {} tasks", tasks);
  }
  return fmt::format("Friedman's test over {} tasks gives {}{}", tasks,
                     p_text(ranking.ranks.friedman->p),
                     ranking.differs ? "" : ", so no two variants are called different");
}

std::string tests_text(const Ranking& ranking) {
  std::string text = friedman_text(ranking);
  if (!ranking.differs) return text;
  text +=
      fmt::format("; by Nemenyi's test, average ranks differ if they are more than {:.2f} apart",
                  ranking.ranks.critical_difference);
  const std::int64_t fewest = fewest_wilcoxon_tasks(ranking.sides.size(), ranking.level);
  if (fewest > static_cast<std::int64_t>(ranking.tasks.size())) {
    return text + fmt::format(
                      "; Wilcoxon's test cannot tell any variants apart over fewer than {} "
                      "tasks",
                      fewest);
  }
  const std::string order = order_text(ranking);
  return order.empty() ? text : text + "; by Wilcoxon's test, " + order;
}

std::int64_t fewest_wilcoxon_tasks(std::size_t sides, double level) {
  // Two sides that differ in the same direction on all of n tasks have p = 2 / 2^n.
  const auto pairs = static_cast<double>(sides * (sides - 1) / 2);
  std::int64_t tasks = 1;
  for (double p = pairs; p > level; p /= 2) ++tasks;
  return tasks;
}

}  // namespace petlab::questions
