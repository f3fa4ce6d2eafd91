#include "orchestrator/running/trial_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/invariant.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/planning/blame.h"
#include "orchestrator/records/decide.h"
#include "results/attempt_events.h"

namespace petlab::orchestrator {

using sweeps::TrialState;

namespace {

std::int64_t bytes_in(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

TrialTable::TrialTable(RunContext& context) : context_(context) {
  const std::vector<sweeps::SweepTrial>& trials = context.input.sweep.trials;
  trials_.resize(trials.size());
  for (std::size_t trial = 0; trial < trials.size(); ++trial) {
    trials_[trial].what = &trials[trial];
    by_id_[trials[trial].id.value] = trial;
  }
}

std::vector<results::TrialFacts> TrialTable::facts_of(
    const std::vector<std::size_t>& trials) const {
  std::vector<std::string> ids;
  ids.reserve(trials.size());
  for (const std::size_t trial : trials) ids.push_back(trials_[trial].id());
  return context_.store.read().trial_facts(ids);
}

TrialPlan TrialTable::plan_from(std::size_t trial, const results::TrialFacts& facts) const {
  return plan_trial(trials_[trial].what->config, facts, context_.planning);
}

void TrialTable::replan(std::size_t trial) {
  unsettle(trial);
  settle(trial, plan_from(trial, facts_of({trial}).front()));
}

std::vector<TrialPlan> TrialTable::plan_part(const std::vector<std::size_t>& trials) {
  const auto plans_of = [&](const std::vector<results::TrialFacts>& facts) {
    std::vector<TrialPlan> plans;
    plans.reserve(trials.size());
    for (std::size_t at = 0; at < trials.size(); ++at) {
      plans.push_back(plan_from(trials[at], facts[at]));
    }
    return plans;
  };
  std::vector<results::TrialFacts> facts = facts_of(trials);
  fault_point("facts_read");
  std::vector<TrialPlan> plans = plans_of(facts);
  if (bring_up_to_date(trials, facts, plans)) {
    facts = facts_of(trials);
    plans = plans_of(facts);
  }
  for (std::size_t at = 0; at < trials.size(); ++at) {
    SweepMember& member = trials_[trials[at]];
    shapes_.learn(trials[at], facts[at].attempts);
    member.cancelled = facts[at].cancelled;
    member.retried_after = facts[at].retried_after;
    member.renewed_after = facts[at].renewed_after;
  }
  return plans;
}

bool TrialTable::plan_all(const std::function<bool()>& may_continue) {
  shapes_ = Shapes(context_.input.sweep.trials);
  std::vector<TrialPlan> plans;
  plans.reserve(trials_.size());
  // Planned in parts, since facts are many times larger than plans.
  for (std::size_t begin = 0; begin < trials_.size(); begin += kPlannedAtOnce) {
    if (!may_continue()) return false;
    std::vector<std::size_t> part(std::min(kPlannedAtOnce, trials_.size() - begin));
    std::iota(part.begin(), part.end(), begin);
    std::vector<TrialPlan> planned = plan_part(part);
    std::move(planned.begin(), planned.end(), std::back_inserter(plans));
  }
  const auto files_gone = std::count_if(plans.begin(), plans.end(),
                                        [](const TrialPlan& plan) { return plan.files_gone; });
  if (files_gone > 0) {
    context_.observer.note(fmt::format(
        "the files of {} finished trial(s) are missing from {}: their scores are in the database, "
        "their artifacts and logs are lost; with another --db they would be rerun",
        files_gone, context_.input.options.runs.string()));
  }
  std::vector<ScheduledTrial> scheduled(trials_.size());
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    scheduled[trial].group = trials_[trial].what->config.backbone;
    scheduled[trial].priority = trials_[trial].what->priority;
    scheduled[trial].gpus = trials_[trial].what->gpus;
    scheduled[trial].expected_seconds = shapes_.seconds(trial);
  }
  schedule_ = Schedule(std::move(scheduled));
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    settle(trial, std::move(plans[trial]));
  }
  return true;
}

// Records the reruns that the user asked for, and reads events that are not in the database yet.
// Returns true if the facts have changed.
bool TrialTable::bring_up_to_date(const std::vector<std::size_t>& trials,
                                  const std::vector<results::TrialFacts>& facts,
                                  const std::vector<TrialPlan>& plans) {
  const RunOptions& options = context_.input.options;
  bool changed = false;
  std::vector<std::pair<std::string, protocol::Decision>> reruns;
  for (std::size_t at = 0; at < trials.size(); ++at) {
    const results::TrialFacts& known = facts[at];
    const TrialPlan& plan = plans[at];
    if (is_rerun(options, known.trial_id, plan.state)) {
      // A retry is enough to rerun a stale result.
      const bool needs_rerun = known.result_attempt && (plan.state != TrialState::stale ||
                                                        options.rerun_all || !options.rerun_stale);
      const auto what =
          needs_rerun ? protocol::Decision::What::rerun : protocol::Decision::What::retry;
      reruns.push_back({known.trial_id, {what, plan.latest, context_.loop.wall_seconds()}});
    } else if (plan.state == TrialState::interrupted || plan.state == TrialState::failed) {
      for (const results::AttemptFacts& attempt : known.attempts) {
        const protocol::TrialDirectory directory(options.runs, known.trial_id,
                                                 attempt.attempt.number);
        const std::int64_t read = results::cursor_of(context_.store.read(), attempt.attempt).offset;
        if (bytes_in(directory.events()) <= read) continue;
        context_.ingest.read_all(attempt.attempt, Writer::gone);
        context_.ingest.forget(attempt.attempt);
        changed = true;
      }
    }
  }
  decide(context_.store, options.runs, reruns);
  return changed || !reruns.empty();
}

void TrialTable::settle(std::size_t trial, TrialPlan plan) {
  SweepMember& member = trials_[trial];
  PETLAB_INVARIANT(member.standing != Standing::waiting && member.standing != Standing::settled,
                   fmt::format("trial {} is settled twice", member.id()));
  elsewhere_.erase(trial);
  if (is_work(plan.state)) {
    if (plan.ran_out_of_memory) schedule_.set_alone(trial, true);
    if (plan.is_to_be_alone) schedule_.set_alone(trial, false);
    const std::int64_t failures = std::max<std::int64_t>(plan.failures, member.unbegun);
    if (member.unbegun >= kLaunchFailuresThatStop) {
      member.standing = Standing::left;
    } else {
      member.standing = Standing::waiting;
      schedule_.add(trial, failures > 0 ? context_.loop.now() +
                                              backoff(context_.input.options.retry_delay, failures)
                                        : EventLoop::Time());
    }
    ++additions_;
  } else if (plan.state == TrialState::running) {
    settle_elsewhere(trial);
  } else {
    member.standing = Standing::settled;
    ++counts_[static_cast<std::size_t>(plan.state)];
  }
  member.plan = std::move(plan);
  context_.observer.settled(member.id());
}

void TrialTable::settle_assigned(std::size_t trial) {
  Standing& standing = trials_[trial].standing;
  PETLAB_INVARIANT(standing == Standing::waiting || standing == Standing::elsewhere,
                   fmt::format("trial {} is assigned, but does not wait", trials_[trial].id()));
  standing = Standing::assigned;
}

void TrialTable::settle_elsewhere(std::size_t trial) {
  trials_[trial].standing = Standing::elsewhere;
  elsewhere_.insert(trial);
}

void TrialTable::unsettle(std::size_t trial) {
  SweepMember& member = trials_[trial];
  if (member.standing == Standing::waiting) schedule_.remove(trial);
  if (member.standing == Standing::settled) {
    --counts_[static_cast<std::size_t>(member.plan.state)];
  }
  member.standing = Standing::unplanned;
}

std::int64_t TrialTable::leave_larger(std::int64_t most) {
  std::int64_t number = 0;
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    if (schedule_.trial(trial).gpus <= most || !schedule_.remove(trial)) continue;
    settle_left(trial);
    ++number;
  }
  return number;
}

std::optional<std::size_t> TrialTable::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t TrialTable::count(TrialState state) const {
  return counts_[static_cast<std::size_t>(state)];
}

bool TrialTable::any_left() const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const SweepMember& member) { return member.standing == Standing::left; });
}

std::vector<const sweeps::TaskDeclaration*> TrialTable::tasks_of(std::size_t trial) const {
  std::vector<const sweeps::TaskDeclaration*> tasks;
  for (const std::string& task : trials_[trial].what->config.tasks) {
    tasks.push_back(&context_.input.sweep.tasks.at(task));
  }
  return tasks;
}

}  // namespace petlab::orchestrator
