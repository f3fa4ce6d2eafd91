#include "orchestrator/running/other_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/inbox.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

using sweeps::TrialState;

namespace {

// How often a run that waits for another orchestrator checks again. It has to poll, since no event
// reports that a lock was released.
constexpr auto kLook = std::chrono::milliseconds(200);
// How often a run checks while workers of a dead orchestrator are ending; most end immediately.
constexpr auto kLookAtDying = std::chrono::milliseconds(20);
// How often a run that waits for a slot checks. The worker of a dead run may hold the slot, also if
// that run had no trials of this sweep.
constexpr auto kLookForSlot = std::chrono::seconds(1);
// Plans trials again at least this often, since only its lock shows that a run with Slurm jobs has
// died.
constexpr auto kPlan = std::chrono::seconds(10);

}  // namespace

void OtherRuns::start() {
  read_inbox(context_.store, context_.input.options.runs);
  const std::vector<std::string> vanished = context_.store.vanished_hosts();
  if (!vanished.empty()) {
    const std::int64_t lost = recovery_.settle_vanished(context_.loop.wall_seconds());
    context_.observer.note(
        fmt::format("took the database from {}, whose lease has ended: closed {} attempt(s)",
                    fmt::join(vanished, ", "), lost));
  }
  clear_up();
  decisions_version_ = context_.store.read().data_version();
}

bool OtherRuns::clear_up() {
  looked_ = context_.loop.now();
  const Recovered recovered = recovery_.step(looked_, context_.loop.wall_seconds());
  if (recovered.attempts > 0) {
    context_.observer.note(
        fmt::format("cleaned up after {} dead orchestrator(s): closed {} attempt(s)",
                    recovered.owners, recovered.attempts));
  }
  return recovered.attempts > 0;
}

std::optional<EventLoop::Time> OtherRuns::next_look() const {
  if (recovery_.under_way()) return looked_ + kLookAtDying;
  if (!state_.course.claiming()) return std::nullopt;
  if (!state_.trials.elsewhere().empty()) return looked_ + kLook;
  if (state_.slots.empty() && state_.trials.schedule().waiting() > 0) return looked_ + kLookForSlot;
  return std::nullopt;
}

void OtherRuns::look(bool cleared_up) {
  const std::int64_t version = context_.store.read().data_version();
  const bool lost_a_claim = std::exchange(state_.claim_lost, false);
  // If nothing was written to the database, only a death can have changed something.
  if (version != seen_version_ || cleared_up || lost_a_claim || looked_ - planned_ >= kPlan) {
    seen_version_ = version;
    planned_ = looked_;
    plan_elsewhere();
  }
  if (state_.attempts.empty() && unknown_ > 0 && unknown_ == state_.trials.elsewhere().size() &&
      state_.trials.schedule().waiting() == 0) {
    state_.course.problem = fmt::format("{} trial(s) {}", unknown_, unknown_hint_);
  }
}

void OtherRuns::plan_elsewhere() {
  unknown_ = 0;
  bool any_in_queue = false;
  bool any_lasting = false;
  std::set<std::string> hosts;  // of attempts that are no jobs
  const std::vector<std::size_t> trials(state_.trials.elsewhere().begin(),
                                        state_.trials.elsewhere().end());
  const std::vector<results::TrialFacts> facts = state_.trials.facts_of(trials);
  fault_point("facts_read");
  for (std::size_t at = 0; at < trials.size(); ++at) {
    TrialPlan plan = state_.trials.plan_from(trials[at], facts[at]);
    if (plan.state != TrialState::running) {
      state_.trials.settle(trials[at], std::move(plan));
    } else if (recovery_.has_lasting_worker(facts[at].attempts.back().begun.owner)) {
      ++unknown_;
      any_lasting = true;
    } else if (context_.planning.liveness(facts[at].attempts.back()) == Liveness::unknown) {
      ++unknown_;
      const protocol::AttemptBegun& begun = facts[at].attempts.back().begun;
      any_in_queue = any_in_queue || in_queue(begun);
      if (!in_queue(begun)) hosts.insert(begun.host);
    }
  }
  if (any_lasting) {
    unknown_hint_ = "held by a worker of an earlier run that was killed but does not exit";
    return;
  }
  if (any_in_queue && context_.launcher.queue() == nullptr) {
    unknown_hint_ = "run as Slurm jobs; `petlab run --launcher slurm` takes them over";
  } else if (hosts.empty()) {
    unknown_hint_ = "run under a petlab on another host, according to their last records";
  } else {
    unknown_hint_ = fmt::format(
        "run on {}, according to their last records; if it is dead, use `petlab retry --dead-host "
        "{}`",
        fmt::join(hosts, ", "), *hosts.begin());
  }
}

void OtherRuns::look_at_decisions() {
  // The data version shows what others have written. If this run holds the database, others post to
  // its inbox instead.
  const bool posted =
      context_.store.alone() && read_inbox(context_.store, context_.input.options.runs);
  const std::int64_t version = context_.store.read().data_version();
  if (version == decisions_version_ && !posted) return;
  decisions_version_ = version;
  std::set<std::size_t> cancelled;
  for (const results::Decided& decision : results::decided(context_.store.read())) {
    const std::optional<std::size_t> trial = state_.trials.find(decision.trial_id);
    if (!trial) continue;
    if (decision.cancelled) cancelled.insert(*trial);
    decided(*trial, decision);
  }
  // A cancellation that the user took back is missing from the decisions.
  for (std::size_t trial = 0; trial < state_.trials.size(); ++trial) {
    if (state_.trials.at(trial).cancelled && !cancelled.contains(trial)) {
      const SweepMember& member = state_.trials.at(trial);
      decided(trial, {member.id(), false, member.retried_after, member.renewed_after});
    }
  }
}

void OtherRuns::decided(std::size_t trial, const results::Decided& now) {
  SweepMember& member = state_.trials.at(trial);
  if (member.cancelled == now.cancelled && member.retried_after == now.retried_after &&
      member.renewed_after == now.renewed_after) {
    return;
  }
  member.cancelled = now.cancelled;
  member.retried_after = now.retried_after;
  member.renewed_after = now.renewed_after;
  member.unbegun = 0;
  if (member.standing == Standing::elsewhere) return;  // planned with the others
  if (member.standing == Standing::assigned) {
    if (now.cancelled) state_.stop(trial, Verdict::cancelled, context_.loop.now());
    return;
  }
  const TrialState before = member.plan.state;
  state_.trials.replan(trial);
  if (member.plan.state == before) return;
  if (member.standing == Standing::waiting) {
    context_.observer.note(fmt::format("{} is pending again: {}", member.id(), member.plan.why));
  } else {
    context_.observer.trial_over(member.id(), member.plan.state, member.plan.why, "");
  }
}

}  // namespace petlab::orchestrator
