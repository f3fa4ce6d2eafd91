#include "tests/orchestrator/scripted_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "orchestrator/running/worker_slot.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::ScriptedAttempt;
using testing::ScriptedRun;
using Does = testing::ScriptedAttempt::Does;
using Seconds = std::vector<double>;

namespace {

// Turns of the loop and grouped commits take a little simulated time.
bool about(const Seconds& found, const Seconds& expected) {
  if (found.size() != expected.size()) return false;
  for (std::size_t at = 0; at < found.size(); ++at) {
    if (found[at] < expected[at] - 1e-3 || found[at] > expected[at] + 0.3) return false;
  }
  return true;
}

std::string text(const Seconds& times) { return fmt::format("{}", fmt::join(times, ", ")); }

std::vector<results::Outcome> outcomes(const results::TrialFacts& facts) {
  std::vector<results::Outcome> all;
  for (const results::AttemptFacts& attempt : facts.attempts) all.push_back(attempt.outcome);
  return all;
}

using OutcomeList = std::vector<results::Outcome>;
using enum results::Outcome;

}  // namespace

TEST_CASE("A whole sweep runs on a simulated clock", "[orchestrator]") {
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
      CHECK(outcomes(sweep.facts(trial)) == OutcomeList{finished});
    }
    CHECK(sweep.launcher.started == (stay ? 2 : 5));
    // A second run trains nothing.
    CHECK(sweep.execute().status.finished_here == 0);
  }
}

TEST_CASE("Trials with several GPUs begin first, and others get what they leave",
          "[orchestrator]") {
  for (const bool stay : {true, false}) {
    ScriptedRun sweep(
        "  a: {seed: 1}\n  b: {seed: 2}\n  c: {seed: 3}\n  d: {seed: 4, resources.gpus: 2}\n", 3,
        stay);
    sweep.launcher.has_devices = true;
    CHECK(orchestrator::exit_code(sweep.execute()) == 0);
    CHECK(about(sweep.launches(3), {0}));
    CHECK(about(sweep.launches(0), {0}));
    CHECK(about(sweep.launches(1), {10}));
    CHECK(about(sweep.launches(2), {10}));
  }
}

TEST_CASE("If the first trial in line needs several GPUs, others wait until they are free",
          "[orchestrator]") {
  for (const bool stay : {true, false}) {
    ScriptedRun sweep(
        "  a: {seed: 1}\n  b: {seed: 2}\n  c: {seed: 3}\n  d: {seed: 4, resources.gpus: 2}\n", 2,
        stay);
    sweep.launcher.has_devices = true;
    sweep.options.retries = 1;
    sweep.options.retry_delay = std::chrono::seconds(4);
    sweep.script(3, {{Does::crash, testing::seconds(1), true, false}, {}});
    sweep.script(0, {{Does::finish, testing::seconds(12)}});
    CHECK(orchestrator::exit_code(sweep.execute()) == 0);
    INFO(text(sweep.launches(0)) << "; " << text(sweep.launches(2)) << "; "
                                 << text(sweep.launches(3)));
    // The first attempt ends at 1 s, the second is ready at 5 s, and both GPUs are free at 13 s.
    CHECK(about(sweep.launches(0), {1}));
    CHECK(about(sweep.launches(1), {1}));
    CHECK(about(sweep.launches(3), {0, 13}));
    CHECK(about(sweep.launches(2), {23}));
  }
}

TEST_CASE("Others begin once the trial that waits for several GPUs is cancelled",
          "[orchestrator]") {
  ScriptedRun sweep(
      "  a: {seed: 1}\n  b: {seed: 2}\n  c: {seed: 3}\n  d: {seed: 4, resources.gpus: 2}\n", 2);
  sweep.launcher.has_devices = true;
  sweep.options.retries = 1;
  sweep.options.retry_delay = std::chrono::seconds(4);
  sweep.script(3, {{Does::crash, testing::seconds(1), true, false}, {}});
  sweep.script(0, {{Does::finish, testing::seconds(60)}});
  sweep.loop.in(testing::seconds(20), [&] {
    results::Store other(sweep.files.database());
    orchestrator::decide(other, sweep.options.runs, sweep.sweep.trials[3].id.value,
                         {protocol::Decision::What::cancel, 0, sweep.loop.wall_seconds()});
  });
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  CHECK(about(sweep.launches(3), {0}));
  CHECK(about(sweep.launches(1), {1}));
  REQUIRE(sweep.launches(2).size() == 1);  // 11 if it had not waited
  CHECK(sweep.launches(2).front() >= 20);
  CHECK(sweep.launches(2).front() < 22);
}

TEST_CASE("Retry delays double, and a trial that keeps crashing fails", "[orchestrator]") {
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
  CHECK(outcomes(sweep.facts(0)) == OutcomeList{crashed, crashed, crashed, crashed});
  CHECK(outcomes(sweep.facts(1)) == OutcomeList{crashed, finished});
  CHECK(sweep.facts(0).attempts.back().reason ==
        "the worker ended with signal 6 (Aborted): the script's last line");
}

TEST_CASE("A trial over its time limit is asked to stop before it is killed, a silent one is not",
          "[orchestrator]") {
  ScriptedRun slow(1, 1);
  slow.options.time_limit = std::chrono::seconds(60);
  slow.options.grace = std::chrono::seconds(20);
  slow.script(0, {{Does::finish, testing::seconds(1000), false, false}});
  CHECK(orchestrator::exit_code(slow.execute()) == 1);
  CHECK(outcomes(slow.facts(0)) == OutcomeList{timed_out});
  INFO(slow.loop.since_start());
  CHECK(slow.loop.since_start() > 80);
  CHECK(slow.loop.since_start() < 84);

  ScriptedRun silent(1, 1);
  silent.options.no_progress_limit = std::chrono::seconds(60);
  silent.options.retries = 1;
  silent.script(0, {{Does::hang}, {}});
  CHECK(orchestrator::exit_code(silent.execute()) == 0);
  CHECK(outcomes(silent.facts(0)) == OutcomeList{stalled, finished});
  INFO(text(silent.launches(0)));
  CHECK(silent.launches(0).back() > 60);
  CHECK(silent.launches(0).back() < 64);
}

TEST_CASE(
    "An interrupted run finishes its running trials, a terminated one stops them at a checkpoint",
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
  CHECK(outcomes(sweep.facts(2)) == OutcomeList{stopped});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  CHECK(sweep.facts(2).attempts.back().begun.resume->attempt == 1);
}

TEST_CASE("A run that is terminated repeatedly still grants its workers their grace period",
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

namespace {

// A run of `trials` on two GPUs, on the first of which every attempt does `what` after a second.
struct OneBadGpu : ScriptedRun {
  OneBadGpu(int trials, Does what) : ScriptedRun(trials, 2) {
    launcher.has_devices = true;
    launcher.slot_script["hand-0"] = {what, testing::seconds(1), true, false};
    options.no_progress_limit = std::chrono::seconds(20);
  }
  int notes_with(const std::string& words) const {
    return static_cast<int>(std::count_if(notes.begin(), notes.end(), [&](const auto& note) {
      return note.find(words) != std::string::npos;
    }));
  }
  int finished_on(const std::string& slot) const {
    int count = 0;
    for (std::size_t trial = 0; trial < sweep.trials.size(); ++trial) {
      const results::AttemptFacts last = facts(trial).attempts.back();
      count += last.outcome == finished && last.begun.device == slot ? 1 : 0;
    }
    return count;
  }
};

}  // namespace

TEST_CASE("A GPU on which everything fails is disabled, and the other one trains the whole sweep",
          "[orchestrator]") {
  for (const Does what : {Does::crash, Does::fail, Does::fail_device, Does::hang, Does::die}) {
    for (const std::int64_t retries : {0, 2}) {
      OneBadGpu sweep(20, what);
      sweep.options.retries = retries;
      const orchestrator::RunResult result = sweep.execute();
      INFO(static_cast<int>(what) << " " << fmt::format("{}", fmt::join(sweep.notes, "\n")));
      CHECK(orchestrator::exit_code(result) == 0);
      CHECK(result.problem.empty());
      CHECK(sweep.finished_on("hand-1") == 20);
      // Workers that die before they begin count against their slot, which three of them disable.
      CHECK(sweep.notes_with("hand-0 is disabled for this run: ") == (what == Does::die ? 0 : 1));
      CHECK(sweep.notes_with("slot hand-0 is disabled: ") == (what == Does::die ? 1 : 0));
      CHECK(sweep.notes.size() == 1);
      // The bad GPU gets only three attempts.
      int on_bad = 0;
      for (std::size_t trial = 0; trial < 20; ++trial) {
        for (const auto& attempt : sweep.facts(trial).attempts) {
          on_bad += attempt.begun.device == "hand-0" ? 1 : 0;
        }
      }
      CHECK(on_bad == 3);
      // The next run finds everything done.
      CHECK(orchestrator::exit_code(sweep.execute()) == 0);
    }
  }
}

TEST_CASE("Trials with more GPUs than are left by disabled ones wait for the next run",
          "[orchestrator]") {
  for (const Does what : {Does::fail_device, Does::die}) {
    std::string variants;
    for (int seed = 1; seed <= 12; ++seed) {
      variants += fmt::format("  s{}: {{seed: {}, priority: {}, resources.gpus: {}}}\n", seed, seed,
                              seed == 8 ? 0 : 12 - seed, seed % 4 == 0 ? 2 : 1);
    }
    ScriptedRun sweep(variants, 2);
    sweep.launcher.has_devices = true;
    sweep.launcher.slot_script["hand-0"] = {what, testing::seconds(1), true, false};
    // The first trial with two GPUs, after three others, finds only one.
    const orchestrator::RunResult result = sweep.execute();
    INFO(static_cast<int>(what) << " " << fmt::format("{}", fmt::join(sweep.notes, "\n")));
    CHECK(orchestrator::exit_code(result) == 1);
    CHECK(result.problem ==
          "skipped 3 trial(s) that need more GPUs than the 1 that this run can still use");
    CHECK(std::count(sweep.notes.begin(), sweep.notes.end(), result.problem) == 1);
    CHECK(result.status.done == 9);
    for (const std::size_t trial : {3, 7, 11}) CHECK(sweep.facts(trial).attempts.size() <= 1);
    // The GPU works again in the next run.
    sweep.launcher.slot_script.clear();
    sweep.launcher.use_device("GPU-hand-0", orchestrator::DeviceUse::usual, 0);
    CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  }
}

TEST_CASE("The note about a disabled GPU gives its name, the reason, and the consequence",
          "[orchestrator]") {
  OneBadGpu sweep(8, Does::fail_device);
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  CHECK(sweep.notes ==
        std::vector<std::string>{"hand-0 is disabled for this run: 3 different trials in a row "
                                 "failed there, while others finish on hand-1; the failed ones are "
                                 "retried elsewhere (last failure: the GPU is lost)"});
  CHECK(sweep.facts(0).attempts.front().kind == "device");
}

TEST_CASE("If everything fails on every GPU, the trials fail and no GPU is disabled",
          "[orchestrator]") {
  for (const Does what : {Does::crash, Does::fail, Does::fail_device}) {
    OneBadGpu sweep(8, what);
    sweep.launcher.slot_script["hand-1"] = sweep.launcher.slot_script["hand-0"];
    sweep.options.retries = 1;
    const orchestrator::RunResult result = sweep.execute();
    INFO(static_cast<int>(what) << " " << fmt::format("{}", fmt::join(sweep.notes, "\n")));
    CHECK(orchestrator::exit_code(result) == 1);
    CHECK(result.status.failed == 8);
    CHECK(sweep.notes.empty());
  }
}

TEST_CASE("A GPU is enabled again once the trials that failed there fail elsewhere, too",
          "[orchestrator]") {
  ScriptedRun sweep(12, 2);
  sweep.launcher.has_devices = true;
  // By bad luck the first GPU gets three bad trials in a row, while the other one trains a good
  // one.
  const ScriptedAttempt bad{Does::fail, testing::seconds(1), true, false};
  for (const std::size_t trial : {0, 2, 3}) sweep.script(trial, {bad});
  const orchestrator::RunResult result = sweep.execute();
  INFO(fmt::format("{}", fmt::join(sweep.notes, "\n")));
  CHECK(result.status.done == 9);
  CHECK(result.status.failed == 3);
  REQUIRE(sweep.notes.size() == 2);
  CHECK(sweep.notes[1] ==
        "hand-0 is enabled again: the trials that failed there also failed elsewhere");
  for (const std::size_t trial : {0, 2, 3}) CHECK(sweep.facts(trial).attempts.size() <= 2);
}

TEST_CASE("A trial whose GPU failed is retried on another one", "[orchestrator]") {
  ScriptedRun sweep(2, 2);
  sweep.launcher.has_devices = true;
  sweep.options.retries = 1;
  sweep.script(0, {{Does::fail_device, testing::seconds(1), true, false}, {}});
  sweep.script(1, {{Does::finish, testing::seconds(30), true, false}});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  CHECK(outcomes(sweep.facts(0)) == OutcomeList{failed, finished});
  CHECK(sweep.facts(0).attempts[1].begun.device != sweep.facts(0).attempts[0].begun.device);
  CHECK(sweep.facts(1).attempts.size() == 1);
}

TEST_CASE("Workers that die before they begin disable their slot, and the trials are left",
          "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  sweep.script(0, {{Does::die}});
  sweep.script(1, {{Does::die}});
  sweep.script(2, {{Does::die}});
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 1);
  CHECK(result.problem.find("three workers in a row exited before starting a trial") !=
        std::string::npos);
  CHECK(sweep.launcher.started == 3);
}

TEST_CASE("A worker that survives its kill is reported, and its slot stays disabled",
          "[orchestrator]") {
  ScriptedRun sweep(6, 2);
  sweep.options.no_progress_limit = std::chrono::seconds(60);
  sweep.script(0, {{.does = Does::hang, .hears_stop = false, .dies = false}, {}});
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 1);
  const std::string id = sweep.sweep.trials[0].id.value;
  CHECK(result.problem ==
        "slot hand-0: worker 1 was killed but does not exit: it waits in the kernel, perhaps for a "
        "device or a file server. The slot stays disabled; skipped in this run: " +
            id);
  CHECK(std::count(sweep.notes.begin(), sweep.notes.end(), result.problem) == 1);
  CHECK(result.status.done == 5);
  CHECK(sweep.launcher.started == 2);
  CHECK(outcomes(sweep.facts(0)) == OutcomeList{results::Outcome::open});
  INFO(sweep.loop.since_start());
  CHECK(sweep.loop.since_start() > 90);
  CHECK(sweep.loop.since_start() < 95);
}

TEST_CASE("A run whose only worker survives its kill ends, even if it is interrupted",
          "[orchestrator]") {
  for (const bool interrupted : {false, true}) {
    ScriptedRun sweep(3, 1);
    sweep.script(0, {{.does = Does::hang, .hears_stop = false, .dies = false}, {}});
    if (interrupted) {
      for (int second = 1; second <= 3; ++second) {
        sweep.loop.in(testing::seconds(second), [&] { sweep.run->interrupt(); });
      }
    } else {
      sweep.options.no_progress_limit = std::chrono::seconds(60);
    }
    const orchestrator::RunResult result = sweep.execute();
    CHECK(orchestrator::exit_code(result) == (interrupted ? 3 : 1));
    CHECK(result.problem.find("does not exit") != std::string::npos);
    CHECK(result.status.done == 0);
    CHECK(sweep.facts(1).attempts.empty());
  }
}

TEST_CASE("A run that is interrupted while it plans starts no trials", "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  boost::asio::post(sweep.io, [&] { sweep.run->interrupt(); });
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 3);
  CHECK(result.status.waiting == 3);
  for (std::size_t trial = 0; trial < 3; ++trial) CHECK(sweep.facts(trial).attempts.empty());
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
}

TEST_CASE("A trial that its slot gives back before its start records why", "[orchestrator]") {
  // Short trials come first, so that more are claimed ahead than the slot's only worker takes.
  ScriptedRun sweep(40, 1, false);
  sweep.options.retry_delay = testing::milliseconds(1);
  for (std::size_t trial = 0; trial < 40; ++trial) {
    sweep.script(trial, {{trial < 4 ? Does::finish : Does::die, testing::milliseconds(0)}});
  }
  const orchestrator::RunResult result = sweep.execute();
  CHECK(orchestrator::exit_code(result) == 1);
  std::set<std::string> reasons;
  for (std::size_t trial = 4; trial < 40; ++trial) {
    for (const auto& attempt : sweep.facts(trial).attempts) reasons.insert(attempt.reason);
  }
  CHECK(reasons ==
        std::set<std::string>{"an error ended the run before the trial started",
                              "the worker ended with exit code 1 before it started this trial"});
}

TEST_CASE("A cancelled trial is stopped within a second, and the others continue",
          "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  const std::string id = sweep.sweep.trials[0].id.value;
  sweep.loop.in(testing::seconds(5), [&] {
    // Through a separate connection, like another program: a store ignores its own writes.
    results::Store other(sweep.files.database());
    orchestrator::decide(other, sweep.options.runs, id,
                         {protocol::Decision::What::cancel, 0, sweep.loop.wall_seconds()});
  });
  const orchestrator::RunResult result = sweep.execute();
  CHECK(result.status.cancelled == 1);
  CHECK(result.status.done == 2);
  CHECK(outcomes(sweep.facts(0)) == OutcomeList{cancelled});
  INFO(text(sweep.launches(1)));
  CHECK(sweep.launches(1).front() < 8);
}

TEST_CASE("Attempts and slots change state only as their tables allow", "[orchestrator]") {
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
}
