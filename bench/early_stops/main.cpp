// Replays a rule of `stop_early` on the curves of a sweep whose trials ran to their ends, in random
// orders: what share of validations it saves, and how often the best trial is kept.
//
//   early_stop_replay sweep.db NAME "{rule: halving, metric: accuracy, at: [1, 3], keep: 1/3}"
//
// For trials of one task. Each slot runs one trial, and all slots advance by a validation together.
// The rule is petlab's own (orchestrator/planning/early_stop.h).

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "orchestrator/planning/early_stop.h"
#include "orchestrator/running/best_metric.h"
#include "results/attempt_events.h"
#include "results/store.h"

using namespace petlab;
using orchestrator::ComparedTrial;
using orchestrator::Score;

namespace {

struct Curve {
  std::string id, configuration;
  std::uint64_t seed = 0;
  std::vector<Score> scores;
};

std::vector<Curve> curves_of(const results::Reader& reader, const std::string& sweep,
                             const std::string& metric) {
  std::map<std::string, std::map<std::int64_t, Score>> by_step;
  results::each_validation(reader, sweep, [&](const results::Validation& one) {
    sweeps::TaskDeclaration task;
    task.name = one.metric.task;
    const auto score = orchestrator::ValidationScores({&task}, metric).add(one.metric);
    if (score) by_step[one.trial_id][score->step] = score->score;
  });
  std::vector<Curve> curves;
  std::size_t longest = 0;
  for (const auto& [id, steps] : by_step) {
    nlohmann::json config = nlohmann::json::parse(reader.trial(id)->config);
    Curve& curve = curves.emplace_back();
    curve.id = id;
    curve.seed = config.value("seed", std::uint64_t{0});
    config.erase("seed");
    curve.configuration = config.dump();
    for (const auto& [step, score] : steps) curve.scores.push_back(score);
    longest = std::max(longest, curve.scores.size());
  }
  std::erase_if(curves, [&](const Curve& curve) { return curve.scores.size() < longest; });
  return curves;
}

struct Outcome {
  std::size_t validations = 0;
  std::set<std::size_t> stopped;
};

// Runs the trials of `order`, as many together as there are slots.
Outcome replay(const sweeps::EarlyStopRule& rule, const std::vector<Curve>& curves,
               const std::vector<std::size_t>& order, std::size_t slots) {
  Outcome outcome;
  std::vector<ComparedTrial> all;
  for (const std::size_t which : order) {
    const Curve& curve = curves[which];
    all.push_back({curve.id, curve.configuration, curve.seed, true, {}});
  }
  std::vector<std::size_t> running;  // indices in `order`
  for (std::size_t next = 0; next < order.size() || !running.empty();) {
    while (running.size() < slots && next < order.size()) running.push_back(next++);
    for (auto one = running.begin(); one != running.end();) {
      const std::vector<Score>& scores = curves[order[*one]].scores;
      const std::size_t validation = all[*one].scores.size() + 1;
      all[*one].scores = std::span(scores).first(validation);
      ++outcome.validations;
      const bool stops = validation < scores.size() &&
                         why_stop(rule, {"score", 1}, all, *one, validation).has_value();
      if (stops) outcome.stopped.insert(order[*one]);
      one = stops || validation == scores.size() ? running.erase(one) : std::next(one);
    }
  }
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  std::string database, sweep, rule_text;
  std::size_t slots = 2, resamples = 1000;
  CLI::App app("Replays a rule of stop_early on recorded curves");
  app.add_option("DB", database)->required();
  app.add_option("SWEEP", sweep)->required();
  app.add_option("RULE", rule_text, "as in a sweep file, with `metric`")->required();
  app.add_option("--slots", slots)->check(CLI::PositiveNumber);
  app.add_option("--resamples", resamples)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    base::FileProblems problems("RULE");
    const sweeps::EarlyStopRule rule =
        sweeps::read_early_stop(base::parse_yaml(rule_text, problems), problems);
    problems.throw_if_any();
    if (rule.metric.empty()) throw std::invalid_argument("RULE names no metric; add metric: NAME");
    const std::vector<Curve> curves = curves_of(results::Reader(database), sweep, rule.metric);
    if (curves.empty()) throw std::invalid_argument("found no trial with validations");
    const auto best = [](const Curve& curve) {
      return *std::max_element(curve.scores.begin(), curve.scores.end());
    };
    Score winning;
    for (const Curve& curve : curves) winning = std::max(winning, best(curve));
    std::size_t all = 0;
    for (const Curve& curve : curves) all += curve.scores.size();
    std::mt19937_64 random(1);
    std::vector<std::size_t> order(curves.size());
    std::iota(order.begin(), order.end(), 0);
    double saved = 0, stopped = 0, kept = 0, lost = 0;
    for (std::size_t resample = 0; resample < resamples; ++resample) {
      std::shuffle(order.begin(), order.end(), random);
      const Outcome outcome = replay(rule, curves, order, slots);
      saved += 1 - static_cast<double>(outcome.validations) / static_cast<double>(all);
      stopped += static_cast<double>(outcome.stopped.size());
      Score best_kept;
      for (std::size_t at = 0; at < curves.size(); ++at) {
        if (!outcome.stopped.contains(at)) best_kept = std::max(best_kept, best(curves[at]));
      }
      kept += best_kept == winning;
      lost += *winning - *best_kept;
    }
    const auto count = static_cast<double>(resamples);
    std::puts(fmt::format("{} trials of {} validations, {} orders: {:.1f} trials stopped, {:.1f} % "
                          "of the validations saved, the best trial kept in {:.1f} %, {:.4f} "
                          "lost on average",
                          curves.size(), curves.front().scores.size(), resamples, stopped / count,
                          100 * saved / count, 100 * kept / count, lost / count)
                  .c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "early_stop_replay: %s\n", error.what());
    return 1;
  }
  return 0;
}
