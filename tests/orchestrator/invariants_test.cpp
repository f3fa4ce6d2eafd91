// Breaks each invariant of the loop once. Those of the store are in
// tests/results/attempt_events_test.cpp.
#include <optional>
#include <string>

#include "orchestrator/running/outcomes.h"
#include "orchestrator/running/run_state.h"
#include "results/attempt_events.h"
#include "tests/orchestrator/scripted_run.h"
#include "tests/support/broken_invariant.h"
#include "tests/support/catch.h"

namespace petlab::orchestrator {
namespace {

using testing::broken_invariant;

/// A run of one trial, and what its parts know before it starts.
struct OneTrial {
  testing::ScriptedRun run{1};
  RunContext context{
      run.loop, *run.store, run.launcher, {run.sweep, run.locations, run.options}, run};
  RunState state{context};
  const std::string id = run.sweep.trials.front().id.value;

  LiveAttempt& add(std::int64_t key) {
    return state.attempts.add(protocol::TrialDirectory(run.options.runs, id, 1), {key, id, 1},
                              state.trials.metric_of(0), AttemptState::claimed);
  }
  void plan() {
    context.planning.runs = run.options.runs;
    state.trials.plan_all([] { return true; });
  }
};

TEST_CASE("An attempt changes state only as its table allows", "[invariants]") {
  OneTrial f;
  LiveAttempt& live = f.add(1);
  live.become(AttemptState::prepared);
  CHECK(broken_invariant([&] { live.become(AttemptState::begun); }) ==
        "attempt 1 of " + f.id + " goes from prepared to begun");
}

TEST_CASE("A slot changes state only as its table allows", "[invariants]") {
  WorkerSlot slot("cpu-0", "", EventLoop::Time());
  CHECK(broken_invariant([&] { slot.report_end({}); }) == "slot cpu-0 goes from empty to ended");
}

TEST_CASE("A slot is held once, and an attempt claimed once", "[invariants]") {
  OneTrial f;
  f.state.slots.add("cpu-0");
  CHECK(broken_invariant([&] { f.state.slots.add("cpu-0"); }) == "slot cpu-0 is held twice");
  f.add(1);
  CHECK(broken_invariant([&] { f.add(1); }) == "attempt 1 of " + f.id + " is claimed twice");
}

TEST_CASE("A trial is settled once, and assigned only if it waits", "[invariants]") {
  OneTrial f;
  f.plan();
  CHECK(broken_invariant([&] { f.state.trials.settle(0, f.state.trials.at(0).plan); }) ==
        "trial " + f.id + " is settled twice");
  f.state.trials.settle_assigned(0);
  CHECK(broken_invariant([&] { f.state.trials.settle_assigned(0); }) ==
        "trial " + f.id + " is assigned, but does not wait");
}

TEST_CASE("In one turn an attempt ends once", "[invariants]") {
  OneTrial f;
  DeviceGuard guard(f.context, f.state);
  std::optional<Shares> shares;
  Outcomes outcomes(f.context, f.state, guard, shares);
  Changes changes;
  Changes::End end;
  end.of = {{1, f.id, 1}, 0, "cpu-0"};
  changes.ends = {end, end};
  CHECK(broken_invariant([&] { outcomes.carry_out(changes); }) ==
        "attempt 1 of " + f.id + " ends twice in one turn");
}

TEST_CASE("The database never lacks events that were read before", "[invariants]") {
  OneTrial f;
  results::AttemptRef attempt;
  {
    results::Batch batch = f.run.store->begin();
    results::NewAttempt request;
    request.trial_id = f.id;
    attempt = std::get<results::AttemptRef>(batch.begin_attempt(request));
    batch.commit();
  }
  const protocol::TrialDirectory directory(f.run.options.runs, f.id, 1);
  std::filesystem::create_directories(directory.folder());
  std::ofstream events(directory.events());
  events << protocol::to_line({0, 1, protocol::Started{7, "w", "1", "{}", "b", {}}}) << std::endl;
  CHECK(f.context.ingest.read_all(attempt).lines == 1);
  events << protocol::to_line({1, 2, protocol::Progress{1, 9, 0.5}}) << std::endl;
  CHECK(broken_invariant([&] {
          results::Batch batch = f.run.store->begin();
          results::forget_events(batch, attempt);
          f.context.ingest.read(batch, attempt);
        }) == "the database has 0 events of attempt 1 of " + f.id + ", but 1 were read before");
}

}  // namespace
}  // namespace petlab::orchestrator
