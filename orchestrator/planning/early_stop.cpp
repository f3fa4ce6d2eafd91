#include "orchestrator/planning/early_stop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "metrics/seed_statistics.h"

namespace petlab::orchestrator {
namespace {

using sweeps::EarlyStopRule;

// An optional without a value is less than any other.
class Judge {
 public:
  Judge(const EarlyStopRule& rule, const ScoreText& text, std::span<const ComparedTrial> all,
        std::size_t own, std::size_t validation)
      : rule_(rule), text_(text), all_(all), own_(all[own]), validation_(validation) {}

  std::optional<std::string> judge() const {
    if (!has_come(own_) || !judges_after(rule_, validation_)) return std::nullopt;
    switch (rule_.kind) {
      case EarlyStopRule::Kind::halving:
        return by_halving();
      case EarlyStopRule::Kind::median:
        return by_median();
      case EarlyStopRule::Kind::paired:
        return by_pairs();
    }
    return std::nullopt;
  }

 private:
  bool has_come(const ComparedTrial& trial) const { return trial.scores.size() >= validation_; }
  Score score(const ComparedTrial& trial) const { return trial.scores[validation_ - 1]; }

  std::optional<std::string> by_halving() const {
    std::vector<Score> scores;
    for (const ComparedTrial& trial : all_) {
      if (has_come(trial)) scores.push_back(score(trial));
    }
    const double share = static_cast<double>(scores.size()) * rule_.keep;
    const auto kept = static_cast<std::size_t>(std::floor(share + 1e-9));
    if (kept == 0) return std::nullopt;
    const auto last = scores.begin() + static_cast<std::ptrdiff_t>(kept - 1);
    std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
    const Score needed = *last;
    if (score(own_) >= needed) return std::nullopt;
    return fmt::format("{} is not among the best {} of {} trials, which have {} or {}", own_text(),
                       kept, scores.size(), shown(needed), text_.factor < 0 ? "less" : "more");
  }

  std::optional<std::string> by_median() const {
    std::vector<Score> others;
    for (const ComparedTrial& trial : all_) {
      if (has_come(trial) && &trial != &own_) others.push_back(score(trial));
    }
    if (others.size() < kFewestForMedian) return std::nullopt;
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    const Score high = *middle;
    const Score low = others.size() % 2 == 0 ? *std::max_element(others.begin(), middle) : high;
    const Score median = low && high ? std::midpoint(*low, *high) : low;
    if (score(own_) >= median) return std::nullopt;
    return fmt::format("{} is worse than {}, the median of {} other trials", own_text(),
                       shown(median), others.size());
  }

  std::optional<std::string> by_pairs() const {
    // Scores by seed, for each configuration.
    std::map<std::string_view, std::map<std::uint64_t, const ComparedTrial*>> configurations;
    for (const ComparedTrial& trial : all_) {
      const bool takes_part = trial.is_opponent || trial.configuration == own_.configuration;
      if (takes_part && has_come(trial) && score(trial)) {
        configurations[trial.configuration][trial.seed] = &trial;
      }
    }
    struct Pairs {
      std::vector<double> theirs, own;
      const ComparedTrial* opponent = nullptr;
      double mean() const {
        return std::accumulate(theirs.begin(), theirs.end(), 0.0) /
               static_cast<double>(theirs.size());
      }
    };
    std::optional<Pairs> best;
    const auto& own = configurations[own_.configuration];
    for (const auto& [configuration, trials] : configurations) {
      if (configuration == own_.configuration) continue;
      Pairs pairs;
      for (const auto& [seed, trial] : trials) {
        const auto same_seed = own.find(seed);
        if (same_seed == own.end()) continue;
        pairs.theirs.push_back(*score(*trial));
        pairs.own.push_back(*score(*same_seed->second));
        pairs.opponent = trial;
      }
      if (pairs.own.size() < kFewestPairs) continue;
      if (!best || pairs.mean() > best->mean()) best = std::move(pairs);
    }
    if (!best) return std::nullopt;
    const auto test = metrics::paired_t_test(best->theirs, best->own);
    if (!test || test->t <= 0 || test->p >= rule_.p) return std::nullopt;
    return fmt::format(
        "the configuration of trial {} has a better {} after validation {} in {} pairs of seeds (p "
        "= {:.2g})",
        best->opponent->id, text_.name, validation_, best->own.size(), test->p);
  }

  std::string shown(const Score& score) const {
    return score ? fmt::format("{:.4g}", *score * text_.factor) : std::string("undefined");
  }
  std::string own_text() const {
    return fmt::format("{} {} after validation {}", text_.name, shown(score(own_)), validation_);
  }

  const EarlyStopRule& rule_;
  const ScoreText& text_;
  std::span<const ComparedTrial> all_;
  const ComparedTrial& own_;
  std::size_t validation_;
};

// The validations of a trial that runs to its end; absent if the data decides.
std::optional<std::int64_t> validations_of(const sweeps::TrainingConfig& training) {
  if (training.evaluate_every == 0) {
    return training.steps == 0 ? std::optional(training.epochs) : std::nullopt;
  }
  if (training.steps == 0) return std::nullopt;
  return (training.steps + training.evaluate_every - 1) / training.evaluate_every;
}

// The fewest validations in a group of comparable trials that have `length` validations each.
double fewest_validations(const EarlyStopRule& rule, double trials, std::int64_t length) {
  if (rule.kind != EarlyStopRule::Kind::halving) {
    return static_cast<double>(length) +
           (trials - 1) * static_cast<double>(std::min(rule.after, length));
  }
  double all = 0;
  std::int64_t before = 0;
  for (const std::int64_t at : rule.at) {
    if (at >= length) break;
    all += trials * static_cast<double>(at - before);
    before = at;
    trials = std::max(1.0, std::floor(trials * rule.keep + 1e-9));
  }
  return all + trials * static_cast<double>(length - before);
}

}  // namespace

bool judges_after(const EarlyStopRule& rule, std::size_t validation) {
  const auto number = static_cast<std::int64_t>(validation);
  return rule.kind == EarlyStopRule::Kind::halving ? std::ranges::count(rule.at, number) > 0
                                                   : number >= rule.after;
}

std::string comparison_group(const sweeps::TrialConfig& config) {
  return fmt::format("{}\n{} {} {} {} {}", fmt::join(config.tasks, "\n"), config.training.epochs,
                     config.training.steps, config.training.evaluate_every,
                     config.data.max_train_examples, config.data.max_validation_examples);
}

std::optional<double> most_saved(const sweeps::Sweep& sweep) {
  if (!sweep.early_stop) return std::nullopt;
  std::map<std::string, std::pair<double, std::int64_t>> groups;  // trials, validations of each
  double all = 0;
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    const std::optional<std::int64_t> length = validations_of(trial.config.training);
    if (!length) return std::nullopt;
    auto& [trials, validations] = groups[comparison_group(trial.config)];
    ++trials;
    validations = *length;
    all += static_cast<double>(*length);
  }
  double fewest = 0;
  for (const auto& [name, group] : groups) {
    fewest += fewest_validations(*sweep.early_stop, group.first, group.second);
  }
  return 1 - fewest / all;
}

std::optional<std::string> why_stop(const EarlyStopRule& rule, const ScoreText& text,
                                    std::span<const ComparedTrial> all, std::size_t own,
                                    std::size_t validation) {
  std::optional<std::string> why = Judge(rule, text, all, own, validation).judge();
  if (why) why = fmt::format("{}: {}", to_string(rule.kind), *why);
  return why;
}

}  // namespace petlab::orchestrator
