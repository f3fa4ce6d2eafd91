#include "metrics/paired_comparison.h"

#include <algorithm>

namespace petlab::metrics {
namespace {

std::int64_t count_undefined(const ScoresByPair& scores) {
  return std::count_if(scores.begin(), scores.end(),
                       [](const auto& score) { return !score.second; });
}

}  // namespace

PairedComparison compare(const ScoresByPair& baseline, const ScoresByPair& system,
                         double confidence) {
  PairedComparison result;
  result.baseline_undefined = count_undefined(baseline);
  result.undefined = count_undefined(system);
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> differences;
  for (const auto& [pair, value] : baseline) {
    const auto other = system.find(pair);
    if (other == system.end()) continue;
    ++result.pairs;
    if (value) a.push_back(*value);
    if (other->second) b.push_back(*other->second);
    if (value && other->second) differences.push_back(*other->second - *value);
  }
  result.unpaired = static_cast<std::int64_t>(baseline.size() + system.size()) - 2 * result.pairs;
  if (result.baseline_undefined == 0) result.baseline_mean = mean(a);
  if (result.undefined == 0) result.mean = mean(b);
  if (result.baseline_undefined > 0 || result.undefined > 0) return result;
  result.effect = mean(differences);
  if (result.pairs < kFewestPairs) return result;
  const auto test = paired_t_test(b, a);
  if (!test) return result;
  result.p = test->p;
  result.interval = student_interval(differences, confidence);
  result.standardised = *result.effect / *sample_deviation(differences);
  return result;
}

ScoresByPair mean_over_tasks(std::span<const ScoresByPair* const> tasks) {
  ScoresByPair means;
  if (tasks.empty()) return means;
  for (const auto& [pair, first] : *tasks.front()) {
    if (!std::all_of(tasks.begin(), tasks.end(), [&, &pair = pair](const ScoresByPair* task) {
          return task->contains(pair);
        })) {
      continue;
    }
    std::vector<double> values;
    for (const ScoresByPair* task : tasks) {
      if (const auto& value = task->at(pair)) values.push_back(*value);
    }
    means[pair] = values.size() == tasks.size() ? mean(values) : std::nullopt;
  }
  return means;
}

void adjust(std::span<PairedComparison* const> family) {
  std::vector<PairedComparison*> tested;
  std::vector<double> p_values;
  for (PairedComparison* one : family) {
    if (!one->p) continue;
    tested.push_back(one);
    p_values.push_back(*one->p);
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->adjusted_p = adjusted[i];
}

}  // namespace petlab::metrics
