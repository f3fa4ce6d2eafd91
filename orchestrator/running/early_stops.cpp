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
    : context_(context), state_(state), looked_at_(state.trials.size()) {
  if (context.input.sweep.early_stop) text_ = text_of(context.input.sweep);
}

void EarlyStops::load() {
  trials_.clear();
  trials_.reserve(context_.input.sweep.trials.size());
  std::map<std::string, std::size_t> groups;
  const sweeps::EarlyStopRule& rule = *context_.input.sweep.early_stop;
  for (std::size_t at = 0; at < context_.input.sweep.trials.size(); ++at) {
    const sweeps::SweepTrial& what = context_.input.sweep.trials[at];
    Trial& trial = trials_.emplace_back(ValidationScores(state_.trials.tasks_of(at), rule.metric));
    trial.configuration = configuration_of(what.config);
    trial.group = groups.emplace(comparison_group(what.config), groups.size()).first->second;
    trial.is_opponent = rule.against.empty() || std::ranges::count(what.variants, rule.against) > 0;
  }
  const results::Reader& reader = context_.store.read();
  version_ = reader.data_version();
  loaded_ = context_.loop.now();
  results::each_validation(reader, context_.input.sweep.name, [&](const results::Validation& one) {
    const std::optional<std::size_t> found = state_.trials.find(one.trial_id);
    if (!found) return;
    Trial& trial = trials_[*found];
    if (trial.attempt.number != one.attempt.number) {
      trial.unjudged.clear();
      drop_after(trial, one.resume_step);
    }
    trial.attempt = one.attempt;
    const std::optional<ValidationScore> score = trial.reader.add(one.metric);
    if (!score) return;
    add(trial, *score);
    if (!one.judged) trial.unjudged.push_back(score->step);
  });
  for (const auto& [id, stop] : results::early_stops(reader)) {
    const std::optional<std::size_t> found = state_.trials.find(id);
    if (!found) continue;
    Trial& trial = trials_[*found];
    trial.stopped_in = stop.after_attempt;
    if (trial.attempt.number == stop.after_attempt) drop_after(trial, stop.after_step);
  }
  for (std::size_t at = 0; at < trials_.size(); ++at) {
    if (!has_outdated_scores(at)) continue;
    trials_[at].unjudged.clear();
    trials_[at].steps.clear();
    trials_[at].scores.clear();
  }
}

// True if a trial's scores are of other numerics or data, or of an attempt that the next one starts
// over.
bool EarlyStops::has_outdated_scores(std::size_t at) const {
  const SweepMember& member = state_.trials.at(at);
  const bool starts_over =
      (member.standing == Standing::waiting || member.standing == Standing::assigned) &&
      !member.plan.resume && trials_[at].attempt.number <= member.plan.latest;
  return starts_over || member.plan.state == sweeps::TrialState::stale;
}

// What a worker still reports while it stops counts for nobody, whether it is fast or slow.
void EarlyStops::drop_after(Trial& trial, std::int64_t step) {
  while (!trial.steps.empty() && trial.steps.back() > step) {
    trial.steps.pop_back();
    trial.scores.pop_back();
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

bool EarlyStops::judge(std::size_t trial, const results::AttemptRef& attempt,
                       std::size_t validation, Changes& changes) {
  // Collecting all trials for each validation would take long in a large sweep.
  if (!judges_after(*context_.input.sweep.early_stop, validation)) return false;
  if (trials_[trial].stopped_in || state_.trials.at(trial).cancelled) return false;
  std::vector<ComparedTrial> all;
  std::size_t own = 0;
  for (std::size_t at = 0; at < trials_.size(); ++at) {
    const Trial& other = trials_[at];
    if (other.group != trials_[trial].group || other.scores.empty()) continue;
    if (at == trial) own = all.size();
    const sweeps::SweepTrial& what = context_.input.sweep.trials[at];
    all.push_back({what.id.value, other.configuration, what.config.seed.value, other.is_opponent,
                   other.scores});
  }
  const auto why = why_stop(*context_.input.sweep.early_stop, text_, all, own, validation);
  if (!why) return false;
  trials_[trial].stopped_in = attempt.number;
  changes.stopped.push_back({attempt.trial_id, trial,
                             protocol::Decision{protocol::Decision::What::stop_early,
                                                attempt.number, context_.loop.wall_seconds(), *why,
                                                trials_[trial].steps[validation - 1]}});
  return true;
}

void EarlyStops::log_stops(Changes& changes) const {
  if (changes.stopped.empty()) return;
  std::vector<std::pair<std::string, protocol::Decision>> decisions;
  for (const auto& stopped : changes.stopped) {
    decisions.emplace_back(stopped.trial_id, stopped.decision);
  }
  changes.post = log_decisions(context_.input.options.runs, decisions);
  fault_point("stops_logged");
}

void EarlyStops::judge(const Turn& turn, Changes& changes) {
  if (!context_.input.sweep.early_stop || turn.validated.empty()) return;
  const EventLoop::Time now = context_.loop.now();
  const bool others_wrote = context_.store.read().data_version() != version_;
  if (trials_.empty() || (others_wrote && now - loaded_ >= kReload)) load();
  for (const Turn::Validated& validated : turn.validated) {
    Trial& trial = trials_[validated.of.trial];
    if (trial.stopped_in == validated.of.attempt.number) continue;
    for (const protocol::Metric& metric : validated.metrics) {
      const std::optional<ValidationScore> score = trial.reader.add(metric);
      if (!score) continue;
      const std::size_t validation = add(trial, *score);
      changes.judged.push_back({validated.of.attempt, score->step});
      if (validated.is_over) continue;
      if (judge(validated.of.trial, validated.of.attempt, validation, changes)) break;
    }
  }
  log_stops(changes);
}

void EarlyStops::judge_interrupted() {
  if (!context_.input.sweep.early_stop) return;
  std::vector<std::size_t> interrupted;
  for (std::size_t at = 0; at < state_.trials.size(); ++at) {
    const SweepMember& member = state_.trials.at(at);
    if (member.standing != Standing::waiting || looked_at_[at] >= member.plan.latest) continue;
    looked_at_[at] = member.plan.latest;
    interrupted.push_back(at);
  }
  if (interrupted.empty()) return;
  load();
  Changes changes;
  for (const std::size_t at : interrupted) {
    Trial& trial = trials_[at];
    if (trial.attempt.number != looked_at_[at]) continue;
    for (const std::int64_t step : trial.unjudged) {
      const auto validation = std::ranges::upper_bound(trial.steps, step) - trial.steps.begin();
      changes.judged.push_back({trial.attempt, step});
      if (!judge(at, trial.attempt, static_cast<std::size_t>(validation), changes)) continue;
      drop_after(trial, step);
      break;
    }
  }
  if (changes.judged.empty()) return;
  log_stops(changes);
  results::Batch batch = context_.store.begin();
  store({}, changes, context_.input.options.runs, context_.ingest, batch);
  batch.commit();
  settle(changes);
  for (const Changes::Stopped& stopped : changes.stopped) {
    state_.trials.replan(stopped.trial);
    const TrialPlan& plan = state_.trials.at(stopped.trial).plan;
    context_.observer.trial_over(stopped.trial_id, plan.state, plan.why, "");
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
