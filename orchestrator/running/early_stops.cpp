#include "orchestrator/running/early_stops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "metrics/metric_table.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/decide.h"
#include "results/attempt_events.h"
#include "results/decisions.h"
#include "sweeps/identity.h"

namespace petlab::orchestrator {
namespace {

// Scores of other orchestrators' trials are read again at most this often.
constexpr auto kReload = std::chrono::seconds(5);

// The fields of a configuration except for its seed, and tasks and backbone by name.
std::string configuration_of(sweeps::TrialConfig config) {
  config.seed = {};
  const std::string names = fmt::format("{}\n{}", config.backbone, fmt::join(config.tasks, "\n"));
  return sweeps::trial_id(config, names, std::vector<std::string>(config.tasks.size())).value;
}

ScoreText text_of(const sweeps::Sweep& sweep) {
  std::set<std::string> names;
  for (const auto& [name, task] : sweep.tasks) {
    names.insert(task.select_by.begin(), task.select_by.end());
  }
  if (!sweep.early_stop->metric.empty()) names = {sweep.early_stop->metric};
  if (names.size() != 1) return {"mean score", 1};
  return {*names.begin(), metrics::higher_is_better(*names.begin()).value_or(true) ? 1.0 : -1.0};
}

}  // namespace

EarlyStops::EarlyStops(RunContext& context, RunState& state)
    : context_(context), state_(state), judged_(state.trials.size()) {
  if (context.sweep.early_stop) text_ = text_of(context.sweep);
}

void EarlyStops::load() {
  trials_.clear();
  trials_.reserve(context_.sweep.trials.size());
  std::map<std::string, std::size_t> groups;
  const sweeps::EarlyStopRule& rule = *context_.sweep.early_stop;
  for (std::size_t at = 0; at < context_.sweep.trials.size(); ++at) {
    const sweeps::SweepTrial& what = context_.sweep.trials[at];
    Trial& trial = trials_.emplace_back(ValidationScores(state_.trials.tasks_of(at), rule.metric));
    trial.configuration = configuration_of(what.config);
    trial.group = groups.emplace(comparison_group(what.config), groups.size()).first->second;
    trial.is_opponent = rule.against.empty() || std::ranges::count(what.variants, rule.against) > 0;
  }
  const results::Reader& reader = context_.store.read();
  version_ = reader.data_version();
  loaded_ = context_.loop.now();
  results::each_validation(reader, context_.sweep.name,
                           [&](const std::string& id, const protocol::Metric& metric) {
                             const std::optional<std::size_t> trial = state_.trials.find(id);
                             if (!trial) return;
                             if (const auto score = trials_[*trial].reader.add(metric))
                               add(trials_[*trial], *score);
                           });
  for (const auto& [id, stop] : results::early_stops(reader)) {
    if (const auto trial = state_.trials.find(id)) trials_[*trial].exempt = true;
  }
}

std::size_t EarlyStops::add(Trial& trial, const ValidationScore& score) {
  const auto step = std::ranges::lower_bound(trial.steps, score.step);
  const auto at = step - trial.steps.begin();
  if (step == trial.steps.end() || *step != score.step) {
    trial.steps.insert(step, score.step);
    trial.scores.insert(trial.scores.begin() + at, score.score);
  } else {
    trial.scores[static_cast<std::size_t>(at)] = score.score;  // after a resume
  }
  return static_cast<std::size_t>(at) + 1;
}

bool EarlyStops::judge(std::size_t trial, std::int64_t attempt,
                       std::span<const std::size_t> validations, Decisions& decisions) {
  if (trials_[trial].exempt || state_.trials.at(trial).cancelled) return false;
  std::vector<ComparedTrial> all;
  std::size_t own = 0;
  for (std::size_t at = 0; at < trials_.size(); ++at) {
    const Trial& other = trials_[at];
    if (other.group != trials_[trial].group || other.scores.empty()) continue;
    if (at == trial) own = all.size();
    const sweeps::SweepTrial& what = context_.sweep.trials[at];
    all.push_back({what.id.value, other.configuration, what.config.seed.value, other.is_opponent,
                   other.scores});
  }
  for (const std::size_t validation : validations) {
    const auto why = why_stop(*context_.sweep.early_stop, text_, all, own, validation);
    if (!why) continue;
    trials_[trial].exempt = true;
    decisions.emplace_back(state_.trials.at(trial).id(),
                           protocol::Decision{protocol::Decision::What::stop_early, attempt,
                                              context_.loop.wall_seconds(), *why});
    return true;
  }
  return false;
}

void EarlyStops::judge(Changes& changes) {
  if (!context_.sweep.early_stop || changes.validated.empty()) return;
  const EventLoop::Time now = context_.loop.now();
  const bool others_wrote = context_.store.read().data_version() != version_;
  if (trials_.empty() || (others_wrote && now - loaded_ >= kReload)) load();
  // All first, so that trials that validate in the same turn are compared with each other.
  std::map<std::size_t, std::vector<std::size_t>> validations;  // by trial
  for (const Changes::Validated& validated : changes.validated) {
    Trial& trial = trials_[validated.trial];
    for (const protocol::Metric& metric : validated.metrics) {
      const std::optional<ValidationScore> score = trial.reader.add(metric);
      if (score) validations[validated.trial].push_back(add(trial, *score));
    }
  }
  Decisions decisions;
  for (const Changes::Validated& validated : changes.validated) {
    const auto judged = validations.find(validated.trial);
    if (judged == validations.end()) continue;
    judged_[validated.trial] = validated.attempt.number;
    const std::vector<std::size_t> numbers = std::exchange(judged->second, {});
    if (!validated.is_over &&
        judge(validated.trial, validated.attempt.number, numbers, decisions)) {
      changes.stopped.push_back({decisions.back().first, validated.trial, decisions.back().second});
    }
  }
  if (decisions.empty()) return;
  changes.post = log_decisions(context_.options.runs, decisions);
  fault_point("stops_logged");
}

void EarlyStops::judge_interrupted() {
  if (!context_.sweep.early_stop) return;
  std::vector<std::size_t> interrupted;
  for (std::size_t trial = 0; trial < state_.trials.size(); ++trial) {
    const SweepMember& member = state_.trials.at(trial);
    const bool waits = member.standing == Standing::waiting &&
                       member.plan.state == sweeps::TrialState::interrupted;
    if (waits && judged_[trial] < member.plan.latest) interrupted.push_back(trial);
  }
  if (interrupted.empty()) return;
  load();
  Decisions decisions;
  std::vector<std::size_t> stopped;
  for (const std::size_t trial : interrupted) {
    judged_[trial] = state_.trials.at(trial).plan.latest;
    const std::size_t last = trials_[trial].scores.size();
    if (last > 0 && judge(trial, judged_[trial], {&last, 1}, decisions)) stopped.push_back(trial);
  }
  decide(context_.store, context_.options.runs, decisions);
  for (const std::size_t trial : stopped) {
    SweepMember& member = state_.trials.at(trial);
    member.cancelled = true;
    state_.trials.replan(trial);
    context_.observer.trial_over(member.id(), member.plan.state, member.plan.why, "");
  }
}

void EarlyStops::settle(const Changes& changes) {
  for (const Changes::Stopped& stopped : changes.stopped) {
    state_.trials.at(stopped.trial).cancelled = true;
    state_.stop(stopped.trial, Verdict::stopped_early, context_.loop.now());
  }
  if (changes.post.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(changes.post, ignored);
}

}  // namespace petlab::orchestrator
