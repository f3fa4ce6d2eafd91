#include "orchestrator/planning/early_stop.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace petlab;
using orchestrator::ComparedTrial;
using orchestrator::most_saved;
using orchestrator::Score;
using sweeps::EarlyStopRule;

namespace {

// Trials with one score per validation.
struct Trials {
  void add(const std::string& configuration, std::uint64_t seed, std::vector<Score> scores) {
    ids.push_back(std::make_unique<std::string>(configuration + std::to_string(seed)));
    names.push_back(std::make_unique<std::string>(configuration));
    curves.push_back(std::make_unique<std::vector<Score>>(std::move(scores)));
    all.push_back({*ids.back(), *names.back(), seed, true, *curves.back()});
  }
  // The reason for stopping the trial; empty: it continues.
  std::string judge(const EarlyStopRule& rule, std::size_t own, std::size_t validation,
                    double factor = 1) const {
    return why_stop(rule, {"accuracy", factor}, all, own, validation).value_or("");
  }

  std::vector<ComparedTrial> all;
  std::vector<std::unique_ptr<std::string>> ids, names;
  std::vector<std::unique_ptr<std::vector<Score>>> curves;
};

EarlyStopRule halving(std::vector<std::int64_t> at, double keep) {
  EarlyStopRule rule;
  rule.at = std::move(at);
  rule.keep = keep;
  return rule;
}

EarlyStopRule of_kind(EarlyStopRule::Kind kind, std::int64_t after) {
  EarlyStopRule rule;
  rule.kind = kind;
  rule.after = after;
  return rule;
}

}  // namespace

TEST_CASE("Halving keeps the best of the trials that have come as far", "[orchestrator]") {
  const EarlyStopRule rule = halving({1, 2}, 1.0 / 3);
  Trials trials;
  trials.add("a", 1, {0.5});
  trials.add("b", 1, {0.1});
  CHECK(trials.judge(rule, 1, 1).empty());  // a third of two trials is none
  trials.add("c", 1, {0.7, 0.9});
  CHECK(trials.judge(rule, 0, 1) ==
        "halving: accuracy 0.5 after validation 1 is not among the best 1 of 3 trials, which have "
        "0.7 or more");
  CHECK(trials.judge(rule, 2, 1).empty());
  CHECK(trials.judge(rule, 2, 2).empty());  // alone there
  CHECK(trials.judge(halving({2}, 1.0 / 3), 0, 1).empty());
  CHECK(trials.judge(rule, 0, 2).empty());  // not there yet
}

TEST_CASE("A trial that ties with the last one kept continues", "[orchestrator]") {
  const EarlyStopRule rule = halving({1}, 0.5);
  Trials trials;
  trials.add("a", 1, {0.5});
  trials.add("b", 1, {0.5});
  trials.add("c", 1, {0.4});
  trials.add("d", 1, {std::nullopt});
  CHECK(trials.judge(rule, 0, 1).empty());
  CHECK(trials.judge(rule, 1, 1).empty());
  CHECK_FALSE(trials.judge(rule, 2, 1).empty());
  CHECK(trials.judge(rule, 3, 1) ==
        "halving: accuracy undefined after validation 1 is not among the best 2 of 4 trials, which "
        "have 0.5 or more");
}

TEST_CASE("Of a metric to minimize, reasons show the metric's own values", "[orchestrator]") {
  Trials trials;
  trials.add("a", 1, {-40.0});
  trials.add("b", 1, {-60.0});
  CHECK(trials.judge(halving({1}, 0.5), 1, 1, -1) ==
        "halving: accuracy 60 after validation 1 is not among the best 1 of 2 trials, which have "
        "40 or less");
}

TEST_CASE("A trial below the median of enough others is stopped", "[orchestrator]") {
  const EarlyStopRule rule = of_kind(EarlyStopRule::Kind::median, 2);
  Trials trials;
  trials.add("own", 1, {0.1, 0.3});
  trials.add("a", 1, {0.1, 0.2});
  trials.add("b", 1, {0.1, 0.4});
  trials.add("c", 1, {0.1, 0.5});
  CHECK(trials.judge(rule, 0, 2).empty());  // three others
  trials.add("d", 1, {0.1, 0.6});
  CHECK(trials.judge(rule, 0, 1).empty());  // before `after`
  CHECK(trials.judge(rule, 0, 2) ==
        "median: accuracy 0.3 after validation 2 is worse than 0.45, the median of 4 other trials");
  CHECK(trials.judge(rule, 2, 2).empty());  // 0.4 of 0.2, 0.3, 0.5, 0.6: the median itself
  trials.add("e", 1, {0.1, std::nullopt});
  trials.add("f", 1, {0.1, std::nullopt});
  trials.add("g", 1, {0.1, std::nullopt});
  CHECK(trials.judge(rule, 0, 2).empty());  // the median of 7 others is 0.2
  CHECK_FALSE(trials.judge(rule, 5, 2).empty());
}

TEST_CASE("Pairs of seeds stop a configuration that is worse for certain", "[orchestrator]") {
  const EarlyStopRule rule = of_kind(EarlyStopRule::Kind::paired, 1);
  Trials trials;
  trials.add("worse", 1, {0.50});
  trials.add("worse", 2, {0.51});
  trials.add("best", 1, {0.60});
  trials.add("best", 2, {0.62});
  trials.add("best", 3, {0.61});
  CHECK(trials.judge(rule, 0, 1).empty());  // two pairs
  trials.add("worse", 3, {0.50});
  CHECK(trials.judge(rule, 0, 1) ==
        "paired: the configuration of trial best3 has a better accuracy after validation 1 in 3 "
        "pairs of seeds (p = 0.00098)");
  CHECK(trials.judge(rule, 2, 1).empty());
  // Better in each of three pairs, but by differences that vary too much.
  trials.add("close", 1, {0.59});
  trials.add("close", 2, {0.58});
  trials.add("close", 3, {0.51});
  CHECK(trials.judge(rule, 6, 1).empty());
  EarlyStopRule against = rule;
  against.against = "close";
  for (ComparedTrial& trial : trials.all) trial.is_opponent = trial.configuration == "close";
  CHECK(trials.judge(against, 0, 1).empty());
}

TEST_CASE("Equal differences in all pairs and undefined scores prove nothing", "[orchestrator]") {
  const EarlyStopRule rule = of_kind(EarlyStopRule::Kind::paired, 1);
  Trials trials;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    trials.add("worse", seed, {0.5});
    trials.add("best", seed, {0.6});
    trials.add("undefined", seed, {std::nullopt});
  }
  CHECK(trials.judge(rule, 0, 1).empty());
  CHECK(trials.judge(rule, 2, 1).empty());
}

TEST_CASE("Trials are compared only on the same examples at equal progress", "[orchestrator]") {
  sweeps::TrialConfig config;
  config.tasks = {"cola"};
  const std::string group = orchestrator::comparison_group(config);
  sweeps::TrialConfig other = config;
  other.seed = {7};
  other.training.learning_rate = 1;
  CHECK(orchestrator::comparison_group(other) == group);
  other = config;
  other.tasks = {"rte"};
  CHECK(orchestrator::comparison_group(other) != group);
  for (std::int64_t sweeps::TrainingConfig::*field :
       {&sweeps::TrainingConfig::epochs, &sweeps::TrainingConfig::steps,
        &sweeps::TrainingConfig::evaluate_every}) {
    other = config;
    other.training.*field = 7;
    CHECK(orchestrator::comparison_group(other) != group);
  }
  for (std::int64_t sweeps::DataConfig::*field :
       {&sweeps::DataConfig::max_train_examples, &sweeps::DataConfig::max_validation_examples}) {
    other = config;
    other.data.*field = 7;
    CHECK(orchestrator::comparison_group(other) != group);
  }
}

TEST_CASE("The most that a rule can save follows from the sweep", "[orchestrator]") {
  sweeps::Sweep sweep;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    sweeps::SweepTrial& trial = sweep.trials.emplace_back();
    trial.config.tasks = {"cola"};
    trial.config.seed = {seed};
    trial.config.training.epochs = 10;
  }
  CHECK_FALSE(most_saved(sweep));
  sweep.early_stop = halving({1, 4}, 1.0 / 3);
  // 9 x 1, then 3 x 3, then 1 x 6 of 90 validations.
  CHECK(most_saved(sweep) == Approx(1 - 24.0 / 90));
  sweep.early_stop = halving({10}, 1.0 / 3);
  CHECK(most_saved(sweep) == Approx(0));
  sweep.early_stop = of_kind(EarlyStopRule::Kind::median, 2);
  CHECK(most_saved(sweep) == Approx(1 - (10 + 8 * 2) / 90.0));
  sweep.trials[0].config.training.evaluate_every = 50;
  CHECK_FALSE(most_saved(sweep));  // the data decides how many steps there are
  sweep.trials[0].config.training.steps = 120;
  CHECK(most_saved(sweep) == Approx(1 - (3 + 10 + 7 * 2) / 83.0));
}
