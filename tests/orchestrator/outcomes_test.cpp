#include "orchestrator/running/outcomes.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "protocol/attempt_log.h"
#include "tests/orchestrator/scripted_run.h"
#include "tests/support/catch.h"

namespace petlab::orchestrator {
namespace {

TEST_CASE("What a turn has found before an error still counts", "[orchestrator]") {
  testing::ScriptedRun run(2);
  RunContext context{
      run.loop, *run.store, run.launcher, {run.sweep, run.locations, run.options}, run};
  context.planning.runs = run.options.runs;
  RunState state(context);
  DeviceGuard guard(context, state);
  std::optional<Shares> shares;
  Outcomes outcomes(context, state, guard, shares);
  REQUIRE(state.trials.plan_all([] { return true; }));
  // The workers of two trials have crashed.
  for (std::size_t trial = 0; trial < 2; ++trial) {
    results::NewAttempt wanted;
    wanted.trial_id = run.sweep.trials[trial].id.value;
    wanted.at_least = 1;
    wanted.sweep = run.sweep.name;
    wanted.owner = run.options.owner;
    results::Batch batch = run.store->begin();
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    context.ingest.expect(batch, attempt);
    batch.commit();
    state.trials.settle_assigned(trial);
    WorkerSlot& slot = state.slots.add(fmt::format("hand-{}", trial));
    LiveAttempt& live = state.attempts.add(
        protocol::TrialDirectory(run.options.runs, wanted.trial_id, attempt.number), attempt,
        state.trials.metric_of(trial), AttemptState::begun);
    live.trial = trial;
    live.slot = slot.name;
    live.worker_ended = true;
    std::filesystem::create_directories(live.directory.folder());
    slot.ended.push_back({{&live}, {Killed{6}, ""}, "", {true, true, false}, false});
  }
  const auto directory = [&run](std::size_t trial) {
    return protocol::TrialDirectory(run.options.runs, run.sweep.trials[trial].id.value, 1);
  };
  // The second one's events cannot be read.
  std::filesystem::create_directory(directory(1).events());
  const Turn turn = outcomes.look();
  CHECK(turn.error != nullptr);
  outcomes.carry_out(judge(turn));
  const std::optional<results::Ending> first = protocol::read_attempt_log(directory(0)).ending;
  REQUIRE(first);
  CHECK(first->outcome == results::Outcome::crashed);
  CHECK_FALSE(protocol::read_attempt_log(directory(1)).ending);
}

}  // namespace
}  // namespace petlab::orchestrator
