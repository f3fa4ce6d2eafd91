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
  PairedComparison made;
  made.baseline_undefined = count_undefined(baseline);
  made.undefined = count_undefined(system);
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> differences;
  for (const auto& [pair, value] : baseline) {
    const auto other = system.find(pair);
    if (other == system.end()) continue;
    ++made.pairs;
    if (value) a.push_back(*value);
    if (other->second) b.push_back(*other->second);
    if (value && other->second) differences.push_back(*other->second - *value);
  }
  made.unpaired = static_cast<std::int64_t>(baseline.size() + system.size()) - 2 * made.pairs;
  if (made.baseline_undefined == 0) made.baseline_mean = mean(a);
  if (made.undefined == 0) made.mean = mean(b);
  if (made.baseline_undefined > 0 || made.undefined > 0) return made;
  made.effect = mean(differences);
  if (made.pairs < kFewestPairs) return made;
  const auto test = paired_t_test(b, a);
  if (!test) return made;
  made.p = test->p;
  made.interval = student_interval(differences, confidence);
  made.standardised = *made.effect / *sample_deviation(differences);
  return made;
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
