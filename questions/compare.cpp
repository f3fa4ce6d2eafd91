#include "questions/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "metrics/error.h"
#include "metrics/metric_table.h"
#include "metrics/power.h"
#include "metrics/seed_statistics.h"
#include "questions/collected.h"
#include "questions/conditions.h"

namespace petlab::questions {
namespace {

using metrics::MetricRow;

// With fewer pairs, no arrangement of signs is rarer than 1 in 20: 2 / 2^5.
constexpr std::int64_t kFewestForRanks = 6;

// Fields that vary over the same values on both sides. Trials with equal values of them are paired.
std::vector<std::string> shared_fields(const SideScores& a, const SideScores& b) {
  std::vector<std::string> shared;
  for (const auto& [name, values] : a.varied()) {
    const auto other = b.varied().find(name);
    if (other != b.varied().end() && other->second == values) shared.push_back(name);
  }
  return shared;
}

std::string undefined_text(const std::string& name, std::int64_t undefined) {
  return fmt::format("{} has {} undefined {}", name, undefined,
                     undefined == 1 ? "score" : "scores");
}

std::string better_of(const Comparison& comparison, const std::string& baseline) {
  const std::optional<bool> higher_is_better = metrics::higher_is_better(comparison.metric);
  if (!higher_is_better) {
    return *comparison.effect > 0 ? comparison.side + " is higher" : comparison.side + " is lower";
  }
  return ((*comparison.effect > 0) == *higher_is_better ? comparison.side : baseline) +
         " is better";
}

// How many seeds would show a difference of this size; empty if seeds are not the problem.
std::string seeds_needed(const Comparison& comparison, double level) {
  if (!comparison.standardised || *comparison.standardised == 0) return {};
  const metrics::PairsNeeded needed = metrics::pairs_needed(
      *comparison.effect, std::fabs(*comparison.effect / *comparison.standardised), level);
  if (needed.answer != metrics::PairsNeeded::Answer::pairs || needed.pairs <= comparison.pairs)
    return {};
  return fmt::format("; needs {}", metrics::more_seeds(needed, comparison.pairs));
}

std::string verdict_over_seeds(const Comparison& comparison, const std::string& baseline,
                               double level) {
  if (comparison.pairs == 0) return "no pairs: no equal task and seed";
  if (comparison.pairs < metrics::kFewestPairs) {
    return !comparison.over_examples() ? "too few pairs to say anything"
                                       : "too few seeds for a test";
  }
  if (!comparison.p) {
    return std::fabs(*comparison.effect) <= metrics::kEqualSpread * std::fabs(*comparison.mean)
               ? "equal in every pair"
               : "the same difference in every pair: no test";
  }
  if (comparison.significant(level)) return better_of(comparison, baseline);
  return "no difference shown" + seeds_needed(comparison, level);
}

std::string verdict(const Comparison& comparison, const std::string& baseline, double level) {
  std::vector<std::string> undefined;
  if (comparison.baseline_undefined > 0) {
    undefined.push_back(undefined_text(baseline, comparison.baseline_undefined));
  }
  if (comparison.undefined > 0)
    undefined.push_back(undefined_text(comparison.side, comparison.undefined));
  if (!undefined.empty()) return fmt::format("undefined: {}", fmt::join(undefined, ", "));
  std::string text = verdict_over_seeds(comparison, baseline, level);
  if (!comparison.over_examples() || !comparison.examples_p) return text;
  const bool shown = *comparison.examples_p < level;
  if (comparison.pairs < metrics::kFewestPairs) {
    return text + "; with these seeds, " +
           (shown ? better_of(comparison, baseline) + " on other examples"
                  : "examples show no difference");
  }
  if (comparison.significant(level) && shown) return text;
  return text + (metrics::limit_of(*comparison.examples->bootstrap) == metrics::Limit::seeds
                     ? "; limited by the seeds"
                     : "; limited by the examples");
}

// The predictions of each pair; empty unless all were kept.
class PairedPredictions {
 public:
  explicit PairedPredictions(const CompareRequest& request) : request_(request) {}

  std::vector<metrics::SeedPredictions> of(const std::map<std::string, ResultOf>& side,
                                           const std::map<std::string, ResultOf>& baseline,
                                           const std::string& task) {
    std::vector<metrics::SeedPredictions> all;
    for (const auto& [pair, result] : side) {
      const auto partner = baseline.find(pair);
      if (partner == baseline.end()) continue;
      const auto& a = kept(result, task);
      const auto& b = kept(partner->second, task);
      if (!a || !b) return {};
      all.push_back({pair.substr(0, pair.find('\x1f')), *a, *b});
    }
    return all;
  }

 private:
  const std::optional<metrics::KeptPredictions>& kept(const ResultOf& result,
                                                      const std::string& task) {
    const auto [known, is_new] = known_.try_emplace({result.trial_id, task});
    if (is_new) known->second = request_.predictions(result, task);
    return known->second;
  }

  const CompareRequest& request_;
  // by trial and task
  std::map<std::pair<std::string, std::string>, std::optional<metrics::KeptPredictions>> known_;
};

// std::nullopt without predictions for each pair. If predictions cannot be read or paired, adds a
// note and leaves the comparison over seeds as it is.
template <typename Pairs, typename Note>
std::optional<metrics::ExampleComparison> over_examples_of(
    const MetricRow& metric, Pairs pairs, const metrics::CrossedBootstrapOptions& options,
    Note note) {
  try {
    const std::vector<metrics::SeedPredictions> seeds = pairs();
    if (!seeds.empty()) return metrics::compare_examples(metric, seeds, options);
  } catch (const metrics::InputError& error) {
    note(error.what());
  } catch (const std::invalid_argument& error) {
    note(error.what());
  }
  return std::nullopt;
}

// Adjusts p over examples by Holm's method, over all comparisons.
void adjust_over_examples(std::vector<Comparison>& comparisons) {
  std::vector<double> p_values;
  std::vector<Comparison*> those;
  for (Comparison& one : comparisons) {
    const auto over_examples = one.over_examples();
    if (!over_examples) continue;
    const std::vector<metrics::McNemarTest>& mcnemar = one.examples->mcnemar;
    p_values.push_back(mcnemar.size() == 1 ? mcnemar.front().p : over_examples->p);
    those.push_back(&one);
  }
  const std::vector<double> adjusted = metrics::holm_adjusted(p_values);
  for (std::size_t i = 0; i < those.size(); ++i) those[i]->examples_p = adjusted[i];
}

}  // namespace

std::optional<Comparison::OverExamples> Comparison::over_examples() const {
  if (!examples || !examples->bootstrap) return std::nullopt;
  const metrics::CrossedBootstrap& bootstrap = *examples->bootstrap;
  if (bootstrap.interval && bootstrap.p) return OverExamples{*bootstrap.interval, *bootstrap.p};
  return OverExamples{bootstrap.examples.bca.value_or(bootstrap.examples.percentile),
                      bootstrap.examples.p};
}

CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request) {
  CompareResult result;
  std::set<std::string> pooled;
  bool averaged = false;
  const SideScores baseline(reader, request, request.baseline);
  PairedPredictions predictions(request);
  metrics::CrossedBootstrapOptions resampling;
  resampling.confidence = request.confidence;
  for (const Side& side : request.others) {
    const SideScores other(reader, request, side);
    const std::vector<std::string> shared = shared_fields(baseline, other);
    pooled.insert(shared.begin(), shared.end());
    const SideScores::Scores a = baseline.scores(shared);
    const SideScores::Scores b = other.scores(shared);
    const SideScores::Results baseline_results = baseline.results(shared);
    const SideScores::Results other_results = other.results(shared);
    for (const auto& [metric, tasks] : a) {
      const auto of_other = b.find(metric);
      if (of_other == b.end()) continue;
      std::vector<const metrics::ScoresByPair*> of_baseline;
      std::vector<const metrics::ScoresByPair*> of_side;
      const auto add = [&, &metric = metric](const std::string& task,
                                             const metrics::ScoresByPair& base,
                                             const metrics::ScoresByPair& scores) {
        result.comparisons.push_back({metrics::compare(base, scores, request.confidence),
                                      side.name,
                                      task,
                                      metric,
                                      {},
                                      {},
                                      {}});
      };
      const MetricRow* const row = metrics::find_metric(metric);
      const bool by_example = request.predictions && request.split == "test" && row != nullptr;
      for (const auto& [task, scores] : tasks) {
        const auto same = of_other->second.find(task);
        if (same == of_other->second.end()) continue;
        add(task, scores, same->second);
        if (by_example) {
          result.comparisons.back().examples = over_examples_of(
              *row,
              [&, &task = task] {
                return predictions.of(other_results.at(task), baseline_results.at(task), task);
              },
              resampling,
              [&, &metric = metric, &task = task](const std::string& why) {
                result.notes.push_back(
                    fmt::format("{} {} is not compared over examples: {}", task, metric, why));
              });
        }
        of_baseline.push_back(&scores);
        of_side.push_back(&same->second);
      }
      if (of_side.size() > 1) {
        add("", metrics::mean_over_tasks(of_baseline), metrics::mean_over_tasks(of_side));
        averaged = true;
      }
    }
  }
  if (result.comparisons.empty()) {
    throw std::invalid_argument("the sides have no metric of one task in common");
  }
  std::vector<metrics::PairedComparison*> family;
  for (Comparison& comparison : result.comparisons) family.push_back(&comparison);
  metrics::adjust(family);
  adjust_over_examples(result.comparisons);
  const double level = 1 - request.confidence;
  std::int64_t tested = 0;
  bool rests_on_normality = false;
  bool unpaired = false;
  bool over_examples = false;
  for (Comparison& comparison : result.comparisons) {
    tested += comparison.p ? 1 : 0;
    comparison.verdict = verdict(comparison, request.baseline.name, level);
    unpaired = unpaired || comparison.unpaired > 0;
    over_examples = over_examples || comparison.over_examples().has_value();
    rests_on_normality =
        rests_on_normality || (comparison.significant(level) && comparison.pairs < kFewestForRanks);
  }
  if (tested > 1) {
    result.notes.push_back(fmt::format("p is adjusted for {} comparisons (Holm)", tested));
  }
  if (over_examples) {
    result.notes.push_back(
        fmt::format("over examples: bootstrap and t test over seeds and examples, with fewer than "
                    "{} seeds over "
                    "examples alone; p is adjusted by Holm's correction",
                    metrics::kFewestPairs));
  }
  if (averaged) {
    result.notes.emplace_back("all tasks: the mean over tasks of each seed that has all of them");
  }
  if (!pooled.empty()) {
    result.notes.push_back(fmt::format(
        "pairs are not of seeds alone, but of each {} too: they may depend on each other",
        fmt::join(pooled, ", ")));
  }
  if (rests_on_normality) {
    result.notes.push_back(
        fmt::format("with fewer than {} pairs a difference rests on the differences being normally "
                    "distributed: ranks alone could not show it",
                    kFewestForRanks));
  }
  if (unpaired) {
    result.notes.emplace_back(
        "some scores have no partner of equal task and seed, and are left out");
  }
  return result;
}

}  // namespace petlab::questions
