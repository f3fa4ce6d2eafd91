#include "tests/orchestrator/scripted_run.h"

#include <fmt/ranges.h>

#include "orchestrator/running/worker_slot.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::ScriptedAttempt;
using testing::ScriptedRun;
using Does = testing::ScriptedAttempt::Does;
using Seconds = std::vector<double>;

namespace {

// Turns of the loop and groups of commits take some of the hand clock's time, but little.
bool about(const Seconds& found, const Seconds& wanted) {
  if (found.size() != wanted.size()) return false;
  for (std::size_t at = 0; at < found.size(); ++at) {
    if (found[at] < wanted[at] - 1e-3 || found[at] > wanted[at] + 0.3) return false;
  }
  return true;
}

std::string text(const Seconds& times) { return fmt::format("{}", fmt::join(times, ", ")); }

std::vector<results::Outcome> outcomes(const results::TrialFacts& facts) {
  std::vector<results::Outcome> all;
  for (const results::AttemptFacts& attempt : facts.attempts) all.push_back(attempt.outcome);
  return all;
}

using Outcomes = std::vector<results::Outcome>;
using enum results::Outcome;

}  // namespace

TEST_CASE("A whole sweep runs by a clock that ticks by hand", "[orchestrator]") {
  for (const bool stay : {true, false}) {
    ScriptedRun sweep(5, 2, stay);
    const orchestrator::RunResult result = sweep.execute();
    CHECK(orchestrator::exit_code(result) == 0);
    CHECK(result.status.done == 5);
    CHECK(result.status.finished_here == 5);
    // Two at a time, ten seconds each.
    INFO(sweep.loop.since_start());
    CHECK(sweep.loop.since_start() >= 30);
    CHECK(sweep.loop.since_start() < 32);
    for (std::size_t trial = 0; trial < 5; ++trial) {
      INFO(trial << ": " << text(sweep.launches(trial)));
      CHECK(about(sweep.launches(trial), {10.0 * static_cast<double>(trial / 2)}));
      CHECK(outcomes(sweep.facts(trial)) == Outcomes{finished});
    }
    CHECK(sweep.launcher.started == (stay ? 2 : 5));
    // What is done is done.
    CHECK(sweep.execute().status.finished_here == 0);
  }
}

TEST_CASE("Retries wait twice as long each time, and a trial that crashes on has failed",
          "[orchestrator]") {
  ScriptedRun sweep(2);
  sweep.options.retries = 3;
  sweep.options.retry_delay = std::chrono::seconds(4);
  sweep.script(0, {{Does::crash, testing::seconds(1), true, false}});
  sweep.script(1, {{Does::crash, testing::seconds(1), true, false}, {}});
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 1);
  INFO(text(sweep.launches(0)) << "; " << text(sweep.launches(1)));
  CHECK(about(sweep.launches(0), {0, 5, 14, 31}));
  CHECK(about(sweep.launches(1), {0, 5}));
  CHECK(outcomes(sweep.facts(0)) == Outcomes{crashed, crashed, crashed, crashed});
  CHECK(outcomes(sweep.facts(1)) == Outcomes{crashed, finished});
  CHECK(sweep.facts(0).attempts.back().reason ==
        "the worker ended with signal 6 (Aborted): the script's last line");
}

TEST_CASE("A trial over its time is asked to stop and then killed, a silent one killed at once",
          "[orchestrator]") {
  ScriptedRun slow(1, 1);
  slow.options.time_limit = std::chrono::seconds(60);
  slow.options.grace = std::chrono::seconds(20);
  slow.script(0, {{Does::finish, testing::seconds(1000), false, false}});
  CHECK(orchestrator::exit_code(slow.execute()) == 1);
  CHECK(outcomes(slow.facts(0)) == Outcomes{timed_out});
  INFO(slow.loop.since_start());
  CHECK(slow.loop.since_start() > 80);
  CHECK(slow.loop.since_start() < 84);

  ScriptedRun silent(1, 1);
  silent.options.no_progress_limit = std::chrono::seconds(60);
  silent.options.retries = 1;
  silent.script(0, {{Does::hang}, {}});
  CHECK(orchestrator::exit_code(silent.execute()) == 0);
  CHECK(outcomes(silent.facts(0)) == Outcomes{stalled, finished});
  INFO(text(silent.launches(0)));
  CHECK(silent.launches(0).back() > 60);
  CHECK(silent.launches(0).back() < 64);
}

TEST_CASE("An interrupted run finishes what runs, a second interrupt stops it at a checkpoint",
          "[orchestrator]") {
  ScriptedRun sweep(4, 2);
  for (std::size_t trial = 0; trial < 4; ++trial) {
    sweep.script(trial, {{Does::finish, testing::seconds(100), true, true}});
  }
  sweep.loop.in(testing::seconds(50), [&] { sweep.run->interrupt(); });
  orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 3);
  CHECK(result.status.finished_here == 2);
  CHECK(sweep.facts(2).attempts.empty());
  sweep.loop.in(testing::seconds(50), [&] { sweep.run->terminate(); });
  result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 3);
  CHECK(outcomes(sweep.facts(2)) == Outcomes{stopped});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  CHECK(sweep.facts(2).attempts.back().begun.resume->attempt == 1);
}

TEST_CASE("A run that is terminated again and again still waits for the grace of its workers",
          "[orchestrator]") {
  ScriptedRun sweep(1, 1);
  sweep.options.grace = std::chrono::seconds(20);
  sweep.script(0, {{Does::finish, testing::seconds(1000), false, true}});
  for (const int second : {50, 51, 60}) {
    sweep.loop.in(testing::seconds(second), [&] { sweep.run->terminate(); });
  }
  CHECK(orchestrator::exit_code(sweep.execute()) == 3);
  INFO(sweep.loop.since_start());
  CHECK(sweep.loop.since_start() > 70);
  CHECK(sweep.loop.since_start() < 74);
}

TEST_CASE("Workers that die before they begin stop their slot, and the trial is left",
          "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  sweep.script(0, {{Does::die}});
  sweep.script(1, {{Does::die}});
  sweep.script(2, {{Does::die}});
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 1);
  CHECK(result.problem.find("three workers in a row ended before they began a trial") !=
        std::string::npos);
  CHECK(sweep.launcher.started == 3);
}

TEST_CASE("A cancelled trial is stopped within a second, and the others go on", "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  const std::string id = sweep.sweep.trials[0].id.value;
  sweep.loop.in(testing::seconds(5), [&] {
    // As another program would: this connection does not see its own writes as news.
    results::Store other(sweep.files.database());
    orchestrator::decide(other, sweep.options.runs, id,
                         {protocol::Decision::What::cancel, 0, sweep.loop.wall_seconds()});
  });
  const orchestrator::RunResult result = sweep.execute();
  CHECK(result.status.cancelled == 1);
  CHECK(result.status.done == 2);
  CHECK(outcomes(sweep.facts(0)) == Outcomes{cancelled});
  INFO(text(sweep.launches(1)));
  CHECK(sweep.launches(1).front() < 8);
}

TEST_CASE("An attempt and a slot take no way that their tables do not have", "[orchestrator]") {
  using orchestrator::AttemptState;
  using orchestrator::SlotState;
  const std::vector<AttemptState> attempt = {AttemptState::claimed,  AttemptState::vanished,
                                             AttemptState::prepared, AttemptState::given,
                                             AttemptState::begun,    AttemptState::over};
  // Rows: from; columns: to.
  const std::vector<std::string> legal = {".11...", "......", "...1.1",
                                          "....11", ".....1", "......"};
  for (std::size_t from = 0; from < attempt.size(); ++from) {
    for (std::size_t to = 0; to < attempt.size(); ++to) {
      CHECK(may_follow(attempt[from], attempt[to]) == (legal[from][to] == '1'));
    }
  }
  const std::vector<SlotState> slot = {SlotState::empty, SlotState::serving, SlotState::closing,
                                       SlotState::stopping, SlotState::ended};
  const std::vector<std::string> allowed = {".1...", "..111", "...11", "....1", "1...."};
  for (std::size_t from = 0; from < slot.size(); ++from) {
    for (std::size_t to = 0; to < slot.size(); ++to) {
      CHECK(may_follow(slot[from], slot[to]) == (allowed[from][to] == '1'));
    }
  }
  const sweeps::TaskDeclaration task;
  orchestrator::LiveAttempt live(protocol::TrialDirectory("/nowhere", "t", 1), {1, "t", 1},
                                 orchestrator::BestMetric({&task}), AttemptState::claimed);
  live.become(AttemptState::prepared);
  CHECK_THROWS_AS(live.become(AttemptState::begun), std::logic_error);
}
