#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/planning/plan.h"
#include "orchestrator/planning/schedule.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/shapes.h"

namespace petlab::orchestrator {

/// A trial's position in this run.
enum class Standing {
  unplanned,  ///< about to be settled
  settled,    ///< finished, failed, cancelled or stopped early: nothing to do
  waiting,    ///< for a slot, or a retry's delay
  assigned,   ///< this run has claimed an attempt of it
  elsewhere,  ///< another orchestrator has claimed it
  left,       ///< skipped in this run: its workers die or hang, or too few GPUs are left
};

/// A trial of the sweep, as this run knows it.
struct SweepMember {
  const sweeps::SweepTrial* what = nullptr;
  TrialPlan plan;
  Standing standing = Standing::unplanned;
  bool cancelled = false;  // or stopped early, as of the last look at decisions
  std::int64_t retried_after = 0;
  std::int64_t renewed_after = 0;
  int unbegun = 0;         // workers in a row that ended before beginning it
  std::string unbegun_on;  // the slot of all these workers; empty: several slots

  const std::string& id() const { return what->id.value; }
};

/// All trials of the sweep by index, with the schedule of the waiting ones. Plans come from the
/// database alone, so that a restart would plan the same.
class TrialTable {
 public:
  explicit TrialTable(RunContext& context);

  /// Plans every trial. Reruns those that the user asked for, and reads results that arrived after
  /// their attempts were given up. Calls `may_continue` before each part of the trials; once that
  /// returns false, so does this, and no trial may run.
  bool plan_all(const std::function<bool()>& may_continue);
  /// Reads the current facts of the trials from the database.
  std::vector<results::TrialFacts> facts_of(const std::vector<std::size_t>& trials) const;
  TrialPlan plan_from(std::size_t trial, const results::TrialFacts& facts) const;
  /// Plans the trial from its current facts in the database, and settles it.
  void replan(std::size_t trial);

  /// Sets the trial's standing according to the plan. Invariant: it neither waits nor is settled.
  void settle(std::size_t trial, TrialPlan plan);
  /// Invariant: the trial waits, or another orchestrator had it.
  void settle_assigned(std::size_t trial);
  void settle_elsewhere(std::size_t trial);
  /// Leaves the trial for the next run.
  void settle_left(std::size_t trial) { trials_[trial].standing = Standing::left; }
  /// Leaves the waiting trials with more than `most` GPUs for the next run. Returns how many.
  std::int64_t leave_larger(std::int64_t most);

  SweepMember& at(std::size_t trial) { return trials_[trial]; }
  const SweepMember& at(std::size_t trial) const { return trials_[trial]; }
  std::size_t size() const { return trials_.size(); }
  std::optional<std::size_t> find(const std::string& id) const;

  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }
  Shapes& shapes() { return shapes_; }
  const std::set<std::size_t>& elsewhere() const { return elsewhere_; }
  /// Settled trials in that state.
  std::int64_t count(sweeps::TrialState state) const;
  /// Grows whenever a trial begins to wait.
  std::int64_t additions() const { return additions_; }
  /// True if a trial is left for the next run.
  bool any_left() const;
  BestMetric metric_of(std::size_t trial) const { return BestMetric(tasks_of(trial)); }
  /// The declarations of the trial's tasks.
  std::vector<const sweeps::TaskDeclaration*> tasks_of(std::size_t trial) const;

 private:
  /// Removes a trial from the schedule and the counts.
  void unsettle(std::size_t trial);
  bool bring_up_to_date(const std::vector<std::size_t>& trials,
                        const std::vector<results::TrialFacts>& facts,
                        const std::vector<TrialPlan>& plans);
  std::vector<TrialPlan> plan_part(const std::vector<std::size_t>& trials);

  RunContext& context_;
  std::vector<SweepMember> trials_;
  std::unordered_map<std::string, std::size_t> by_id_;
  Schedule schedule_{{}};
  Shapes shapes_;
  std::set<std::size_t> elsewhere_;
  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>(9, 0);  // by TrialState
  std::int64_t additions_ = 0;
};

}  // namespace petlab::orchestrator
