// Trials that take milliseconds are claimed ahead and committed in groups.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

namespace {

std::string short_trials(int count, int crashing = -1) {
  std::string variants;
  for (int trial = 0; trial < count; ++trial) {
    variants += fmt::format("  t{0}: {{seed: {0}, user: {{steps: 1{1}}}}}\n", trial,
                            trial == crashing ? ", behaviour: kill" : "");
  }
  return variants;
}

/// Runs a sweep with the shell script `worker` in its folder.
testing::CommandResult run_on_two_slots(const testing::ScriptedSweep& sweep) {
  std::filesystem::permissions(sweep.folder.path() / "worker", std::filesystem::perms::owner_all);
  return sweep.petlab(
      "run sweep.yaml --fresh-workers --device cpu --slots 2 --retry-delay 10ms --grace 300ms "
      "--worker ./worker",
      "timeout 60");
}

}  // namespace

TEST_CASE("Each of many short trials is recorded once, even if a worker dies", "[orchestrator]") {
  for (const char* mode : {"--fresh-workers", ""}) {
    const testing::ScriptedSweep sweep(short_trials(60, 40));
    const auto result = sweep.run(mode);
    INFO(mode << result.err);
    CHECK(result.exit_code == 0);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 60);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'open'") == 0);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed'") == 1);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE launched_at IS NULL AND outcome = "
                       "'finished'") == 0);
    CHECK(sweep.number("SELECT count(*) FROM results WHERE name = 'score'") == 60);
  }
}

// The worker of one slot starts to fail once that slot has claimed trials ahead.
TEST_CASE("A disabled slot gives back the trials that it had claimed ahead", "[orchestrator]") {
  const testing::ScriptedSweep sweep(short_trials(200));
  const std::string folder = sweep.folder.path().string();
  sweep.folder.write("calls", "0\n");
  sweep.folder.write("worker", fmt::format(R"(#!/bin/sh
[ "$1" = --describe ] && exit 1
case "$PETLAB_WORKER" in *.cpu-1.lock)
  read calls <{0}/calls
  echo $((calls + 1)) >{0}/calls
  [ $calls -lt 40 ] || {{ echo no more; exit 1; }}
esac
echo '{{"v": 1, "seq": 0, "time": 1.0, "type": "started", "pid": 1}}' >>"$1/events.jsonl"
echo '{{"v": 1, "seq": 1, "time": 2.0, "type": "finished", "step": 0}}' >>"$1/events.jsonl"
)",
                                           folder));
  const auto result = run_on_two_slots(sweep);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("slot cpu-1 is disabled") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 200);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome NOT IN ('finished', "
                     "'never_started')") == 0);
}

// Only one trial is left for the failing slot, and the other slot is busy until it is disabled.
TEST_CASE("A trial that one slot could not start is started on another", "[orchestrator]") {
  const testing::ScriptedSweep sweep(short_trials(2));
  const std::string folder = sweep.folder.path().string();
  sweep.folder.write("worker", fmt::format(R"sh(#!/bin/sh
[ "$1" = --describe ] && exit 1
case "$PETLAB_WORKER" in *.cpu-1.lock) echo >>{0}/calls; echo no more; exit 1; esac
echo '{{"v": 1, "seq": 0, "time": 1.0, "type": "started", "pid": 1}}' >>"$1/events.jsonl"
until [ "$(wc -l <{0}/calls)" = 3 ]; do sleep 0.01; done
sleep 0.1
echo '{{"v": 1, "seq": 1, "time": 2.0, "type": "finished", "step": 0}}' >>"$1/events.jsonl"
)sh",
                                           folder));
  const auto result = run_on_two_slots(sweep);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("slot cpu-1 is disabled") != std::string::npos);
  CHECK(result.err.find("is left") == std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 2);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'never_started'") == 3);
}

// The process does not exit, for example because a thread does not end or a device does not close.
TEST_CASE("A worker that lingers after its only trial does not keep its slot", "[orchestrator]") {
  const testing::ScriptedSweep sweep(short_trials(3));
  sweep.folder.write("worker", R"(#!/bin/sh
[ "$1" = --describe ] && exit 1
echo '{"v": 1, "seq": 0, "time": 1.0, "type": "started", "pid": 1}' >>"$1/events.jsonl"
echo '{"v": 1, "seq": 1, "time": 2.0, "type": "finished", "step": 0}' >>"$1/events.jsonl"
exec sleep 1000
)");
  std::filesystem::permissions(sweep.folder.path() / "worker", std::filesystem::perms::owner_all);
  const auto result = sweep.petlab(
      "run sweep.yaml --fresh-workers --device cpu --slots 1 --grace 100ms --worker ./worker",
      "timeout 60");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 3);
}
