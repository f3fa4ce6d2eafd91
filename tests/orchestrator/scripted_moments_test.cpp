// Moments between two events of a run, forced with a hand-driven clock.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/orchestrator/scripted_run.h"
#include "tests/support/catch.h"

using namespace petlab;
using namespace std::chrono_literals;
using testing::ScriptedAttempt;
using testing::ScriptedRun;
using Does = testing::ScriptedAttempt::Does;

namespace {

using enum results::Outcome;

std::vector<results::Outcome> ends_of(const results::TrialFacts& facts) {
  std::vector<results::Outcome> all;
  for (const results::AttemptFacts& attempt : facts.attempts) all.push_back(attempt.outcome);
  return all;
}

using Ends = std::vector<results::Outcome>;

protocol::Progress at_step(std::int64_t step, std::int64_t of, double device_memory_mib = 0) {
  protocol::Progress progress{step, of, 0.5};
  if (device_memory_mib > 0) progress.device_memory_mib = device_memory_mib;
  return progress;
}

/// The estimate of the time left when the first running trial reaches a step.
struct LeftAtStep {
  explicit LeftAtStep(ScriptedRun& run, std::int64_t step) {
    run.on_status = [this, step](const orchestrator::RunStatus& now) {
      if (now.trials.empty() || now.trials[0].step != step || seconds) return;
      seconds = now.trials[0].seconds_left;
    };
  }
  std::optional<double> seconds;
};

/// One large device that grants every share that is requested.
class HandDevices final : public orchestrator::SharedDevices {
 public:
  explicit HandDevices(testing::ScriptedLauncher& launcher) : launcher_(launcher) {
    launcher.shared = this;
  }
  std::optional<std::string> acquire_share(const orchestrator::SlotRequest& request) override {
    const std::optional<std::string> slot = launcher_.acquire_slot(1);
    if (!slot) return slot;
    requested.push_back(request.memory_mib.value_or(-1));
    reserved_[*slot] = request.memory_mib.value_or(kLargest);
    return slot;
  }
  orchestrator::DeviceShare share(const std::string& slot) const override {
    return {reserved_.at(slot), false};
  }
  void report_memory(const std::string&, std::int64_t reported_mib) override {
    reported.push_back(reported_mib);
  }
  orchestrator::Resized resize_share(const std::string& slot, std::int64_t mib) override {
    reserved_[slot] = mib;
    resized.push_back(mib);
    return orchestrator::Resized::done;
  }
  std::int64_t largest_share_mib() const override { return kLargest; }
  std::int64_t room_mib() const override { return kLargest; }

  std::vector<std::int64_t> requested, reported, resized;

 private:
  static constexpr std::int64_t kLargest = 80'000;
  testing::ScriptedLauncher& launcher_;
  std::map<std::string, std::int64_t> reserved_;
};

}  // namespace

TEST_CASE("The time left is computed from the steps of this attempt alone", "[orchestrator]") {
  // Both attempts are at step 1 when they start; the second makes a step each second.
  ScriptedRun sweep(1, 1);
  ScriptedAttempt first{Does::crash, 20s, true, true};
  ScriptedAttempt second{Does::finish, 30s};
  second.reports = {{10s, at_step(11, 21)}};
  sweep.script(0, {first, second});
  LeftAtStep left(sweep, 11);
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  // Ten steps took 10 s, and ten are left.
  REQUIRE(left.seconds);
  CHECK(*left.seconds > 8.5);
  CHECK(*left.seconds <= 10);
  REQUIRE(sweep.facts(0).attempts.size() == 2);
  CHECK(sweep.facts(0).attempts[1].begun.resume->step == 1);
}

TEST_CASE("Time spent suspended counts against no limit", "[orchestrator]") {
  // The worker reports long after it began, is suspended right after that, and is silent for a
  // while when it continues.
  ScriptedAttempt suspended{Does::finish, 1040s};
  suspended.reports = {{100s, at_step(1, 4)}};
  suspended.suspended = {101s, 1000s};
  {
    ScriptedRun sweep(1, 1);
    sweep.options.no_progress_limit = 120s;
    sweep.script(0, {suspended});
    CHECK(orchestrator::exit_code(sweep.execute()) == 0);
    CHECK(ends_of(sweep.facts(0)) == Ends{finished});
  }
  {
    ScriptedRun sweep(1, 1);
    sweep.options.time_limit = 150s;
    sweep.script(0, {suspended});
    CHECK(orchestrator::exit_code(sweep.execute()) == 0);
    CHECK(ends_of(sweep.facts(0)) == Ends{finished});
    CHECK(sweep.notes.empty());
  }
  // The time before and after the suspension counts.
  for (const auto& [limit, ended] : {std::pair{130s, timed_out}, std::pair{150s, finished}}) {
    ScriptedRun sweep(1, 1);
    sweep.options.time_limit = limit;
    sweep.options.retries = 0;
    sweep.script(0, {suspended});
    sweep.execute();
    CHECK(ends_of(sweep.facts(0)) == Ends{ended});
  }
  for (const auto& [limit, ended] :
       {std::pair{30s, stalled}, std::pair{50s, stalled}, std::pair{110s, finished}}) {
    ScriptedRun sweep(1, 1);
    sweep.options.no_progress_limit = limit;
    sweep.options.retries = 0;
    sweep.script(0, {suspended});
    sweep.execute();
    INFO(limit.count());
    CHECK(ends_of(sweep.facts(0)) == Ends{ended});
  }
}

TEST_CASE("Growth after settling raises the share of similar trials", "[orchestrator]") {
  ScriptedRun sweep(3, 1);
  HandDevices devices(sweep.launcher);
  sweep.options.trial_memory_mib = 1000;
  ScriptedAttempt grows{Does::finish, 100s};
  // Its memory has settled at step 50 and grows at step 60.
  grows.reports = {{10s, at_step(1, 100, 500)},
                   {20s, at_step(50, 100, 500)},
                   {30s, at_step(60, 100, 2000)},
                   {40s, at_step(70, 100, 1500)}};
  sweep.script(0, {grows});
  sweep.script(1, {grows});
  sweep.script(2, {grows});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  INFO(fmt::format("asked {}, resized {}", devices.requested, devices.resized));
  // 2000 MiB plus a tenth plus 64 MiB. The slot of the first trial suits the others.
  CHECK(devices.requested == std::vector<std::int64_t>{1000});
  REQUIRE_FALSE(devices.resized.empty());
  CHECK(devices.resized.back() == 2264);
  CHECK(*std::max_element(devices.resized.begin(), devices.resized.end()) == 2264);
  CHECK(*std::max_element(devices.reported.begin(), devices.reported.end()) == 2000);
}

TEST_CASE("A settled worker gives back memory that it does not need", "[orchestrator]") {
  ScriptedRun sweep(2, 1);
  HandDevices devices(sweep.launcher);
  sweep.options.trial_memory_mib = 8000;
  ScriptedAttempt small{Does::finish, 100s};
  small.reports = {
      {10s, at_step(1, 100, 500)}, {20s, at_step(3, 100, 500)}, {30s, at_step(6, 100, 500)}};
  sweep.script(0, {small});
  sweep.script(1, {small});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  INFO(fmt::format("asked {}, resized {}", devices.requested, devices.resized));
  CHECK(devices.requested == std::vector<std::int64_t>{8000});
  CHECK(devices.resized.front() == 8000);  // it may still grow
  CHECK(devices.resized.back() == 614);
}

TEST_CASE("The options of a run reach trial.json and the attempt", "[orchestrator]") {
  ScriptedRun sweep(1, 1);
  sweep.options.threads = 3;
  sweep.options.retries = 5;
  sweep.script(0, {{Does::crash, 1s, true, true}, {}});
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  const results::TrialFacts facts = sweep.facts(0);
  REQUIRE(facts.attempts.size() == 2);
  for (const results::AttemptFacts& attempt : facts.attempts) {
    const protocol::TrialDirectory directory(sweep.options.runs, facts.trial_id,
                                             attempt.attempt.number);
    const auto trial_json = nlohmann::json::parse(testing::read_file(directory.trial_json()));
    CHECK(trial_json.at("threads") == 3);
    CHECK(trial_json.at("attempt") == attempt.attempt.number);
    CHECK(trial_json.at("device") == "cpu");
    CHECK(trial_json.contains("resume") == (attempt.attempt.number == 2));
    CHECK(attempt.begun.retries == 5);
  }
}

TEST_CASE("Cancelling a rerun keeps the earlier result", "[orchestrator]") {
  ScriptedRun sweep(2, 1);
  CHECK(orchestrator::exit_code(sweep.execute()) == 0);
  const std::string id = sweep.sweep.trials[0].id.value;
  sweep.options.rerun_all = true;
  sweep.script(0, {{}, {Does::finish, 100s}});
  sweep.loop.in(5s, [&] {
    // Through a separate connection, like another program: a store ignores its own writes.
    results::Store other(sweep.files.database());
    orchestrator::decide(other, sweep.options.runs, id,
                         {protocol::Decision::What::cancel, 0, sweep.loop.wall_seconds()});
  });
  sweep.execute();
  CHECK(ends_of(sweep.facts(0)) == Ends{finished, cancelled});
  CHECK(sweep.facts(0).cancelled);
  CHECK(sweep.facts(0).result_attempt == 1);
  CHECK(ends_of(sweep.facts(1)) == Ends{finished, finished});
  INFO(sweep.launches(1).back());
  CHECK(sweep.launches(1).back() < 100);
}

TEST_CASE("A trial cancelled after its claim and before its start ends as cancelled",
          "[orchestrator]") {
  // The first trials are short, so the run claims the next ones ahead of their worker.
  ScriptedRun sweep(40, 1, false);
  for (std::size_t trial = 0; trial < 40; ++trial) {
    sweep.script(trial, {{Does::finish, trial == 4 ? 100s : 0s}});
  }
  constexpr std::size_t kCancelled = 6;
  sweep.loop.in(5s, [&] {
    REQUIRE(ends_of(sweep.facts(kCancelled)) == Ends{results::Outcome::open});
    results::Store other(sweep.files.database());
    orchestrator::decide(other, sweep.options.runs, sweep.facts(kCancelled).trial_id,
                         {protocol::Decision::What::cancel, 0, sweep.loop.wall_seconds()});
  });
  const orchestrator::RunResult result = sweep.execute();
  CHECK(result.status.cancelled == 1);
  CHECK(result.status.done == 39);
  const results::TrialFacts facts = sweep.facts(kCancelled);
  CHECK(ends_of(facts) == Ends{cancelled});
  CHECK(facts.attempts.front().reason == "petlab cancel");
  CHECK_FALSE(facts.attempts.front().launch);
}

TEST_CASE("Failed launches do not add up if trials start between them", "[orchestrator]") {
  ScriptedRun sweep(12, 1, false);
  for (std::size_t trial = 0; trial < 12; trial += 2) sweep.script(trial, {{Does::die}, {}});
  const orchestrator::RunResult result = sweep.execute();
  CHECK(result.problem.empty());
  CHECK(orchestrator::exit_code(result) == 0);
  CHECK(result.status.done == 12);
}

TEST_CASE("Output that may be of either of two trials is recorded for neither", "[orchestrator]") {
  // The worker finishes one trial, fails the next one and dies before the run has read any of it.
  ScriptedRun sweep(40, 1);
  sweep.options.retries = 0;
  for (std::size_t trial = 0; trial < 4; ++trial) sweep.script(trial, {{Does::finish, 0s}});
  sweep.script(4, {{Does::finish, 100s}});
  ScriptedAttempt fails{Does::fail_device};
  fails.right_away = true;
  sweep.script(5, {fails});
  sweep.execute();
  CHECK(ends_of(sweep.facts(4)) == Ends{finished});
  const results::TrialFacts facts = sweep.facts(5);
  REQUIRE(ends_of(facts) == Ends{failed});
  CHECK(facts.attempts.front().reason == "the GPU is lost");
  CHECK(facts.attempts.front().log_tail.empty());
}

TEST_CASE("Two suspects of one crash are each tried alone", "[orchestrator]") {
  // The trials are short, so the worker is usually given many.
  ScriptedRun sweep(40, 1);
  sweep.options.retry_delay = 0s;
  sweep.options.retries = 0;
  for (std::size_t trial = 0; trial < 40; ++trial) sweep.script(trial, {{Does::finish, 0s}});
  sweep.script(5, {{Does::leave}, {Does::finish, 100s}});
  sweep.script(6, {{Does::crash, 0s}, {Does::finish, 100s}});
  std::vector<std::vector<std::size_t>> open;
  bool others_wait = false;
  for (const auto time : {50s, 150s}) {
    sweep.loop.in(time, [&] {
      std::vector<std::size_t>& now = open.emplace_back();
      for (std::size_t trial = 0; trial < 40; ++trial) {
        const Ends ends = ends_of(sweep.facts(trial));
        if (!ends.empty() && ends.back() == results::Outcome::open) now.push_back(trial);
        others_wait = others_wait || ends.empty();
      }
    });
  }
  const orchestrator::RunResult result = sweep.execute();
  CHECK(result.status.done == 40);
  CHECK(open == std::vector<std::vector<std::size_t>>{{5}, {6}});
  CHECK(others_wait);
  CHECK(sweep.facts(6).attempts.front().reason.ends_with(
      "with 2 trials running: retrying each alone"));
}
