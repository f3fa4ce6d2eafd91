#include "orchestrator/running/turn.h"

#include <utility>

#include "tests/support/catch.h"

namespace petlab::orchestrator {
namespace {

using Device = Changes::End::Device;
using Retry = Changes::End::Retry;
using WorkerNext = Changes::End::WorkerNext;
using results::Outcome;

TurnAttempt attempt(std::int64_t key) {
  return {{key, "trial" + std::to_string(key), 1}, static_cast<std::size_t>(key), "gpu-0"};
}

Turn::Reported reported(AttemptOver end) {
  Turn::Reported reported;
  reported.of = attempt(1);
  reported.end = std::move(end);
  return reported;
}

Changes::End end_of(Turn::Reported reported) {
  Turn turn;
  turn.time = 5;
  turn.reported.push_back(std::move(reported));
  Changes changes = judge(turn);
  REQUIRE(changes.ends.size() == 1);
  CHECK(changes.ends.front().of.attempt.key == 1);
  if (changes.ends.front().ending) CHECK(changes.ends.front().ending->time == 5);
  return changes.ends.front();
}

// A worker of the attempts 1, 2, … which had begun the first `begun` of them.
Turn::Gone gone(WorkerEnd end, std::size_t number, std::size_t begun) {
  Turn::Gone gone;
  gone.slot = "gpu-0";
  gone.end = std::move(end);
  gone.worker.any_begun = begun > 0;
  for (std::size_t at = 0; at < number; ++at) {
    gone.attempts.push_back(attempt(static_cast<std::int64_t>(at + 1)));
    gone.known.push_back({at < begun, false, Verdict::none});
  }
  return gone;
}

Changes changes_of(Turn::Gone gone, bool queue = false) {
  Turn turn;
  turn.queue = queue;
  turn.gone.push_back(std::move(gone));
  return judge(turn);
}

TEST_CASE("A finished trial has no ending but its events, and its device works", "[orchestrator]") {
  const Changes::End end = end_of(reported(protocol::Finished()));
  CHECK_FALSE(end.ending);
  CHECK(end.device == Device::works);
  CHECK(end.worker == WorkerNext::continues);
}

TEST_CASE("What a trial's failure says about its worker and its device depends on its kind",
          "[orchestrator]") {
  const auto [kind, device, retry, worker] = GENERATE(table<std::string, Device, Retry, WorkerNext>(
      {{"error", Device::failed, Retry::usual, WorkerNext::continues},
       {"device", Device::failed, Retry::usual, WorkerNext::stops},
       {"protocol", Device::unknown, Retry::usual, WorkerNext::dies},
       {"out_of_memory", Device::unknown, Retry::out_of_memory, WorkerNext::continues}}));
  CAPTURE(kind);
  Turn::Reported failed = reported(protocol::Failed{"why", kind});
  failed.last_lines = "last words\n";
  const Changes::End end = end_of(failed);
  REQUIRE(end.ending);
  CHECK(end.ending->outcome == Outcome::failed);
  CHECK(end.ending->reason == "why");
  CHECK(end.ending->log_tail == "last words\n");
  CHECK(end.device == device);
  CHECK(end.retry == retry);
  CHECK(end.worker == worker);
  // A worker that has ended since is not told.
  failed.worker_ended = true;
  CHECK(end_of(failed).worker == WorkerNext::continues);
}

TEST_CASE("A trial that stops alone has crashed unless petlab asked it to stop", "[orchestrator]") {
  Turn::Reported stopped = reported(protocol::Stopped());
  CHECK(end_of(stopped).ending->outcome == Outcome::crashed);
  stopped.asked_to_stop = true;
  CHECK(end_of(stopped).ending->outcome == Outcome::stopped);
  stopped.verdict = Verdict::cancelled;
  CHECK(end_of(stopped).ending->outcome == Outcome::cancelled);
}

TEST_CASE("A crash counts against the device of the trial that had begun", "[orchestrator]") {
  const Changes changes = changes_of(gone({Killed{9}, ""}, 2, 1));
  REQUIRE(changes.ends.size() == 2);
  CHECK(changes.ends[0].ending->outcome == Outcome::crashed);
  CHECK(changes.ends[0].device == Device::failed);
  CHECK(changes.ends[1].ending->outcome == Outcome::never_started);
  CHECK(changes.ends[1].device == Device::unknown);
  CHECK(changes.workers.empty());
}

TEST_CASE("Trials that ran together when their worker ended are retried alone", "[orchestrator]") {
  // Ends of other attempts come first, so that indices of one worker are not those of the turn.
  Turn turn;
  turn.reported.push_back(reported(protocol::Finished()));
  turn.reported.front().of = attempt(9);
  turn.gone.push_back(gone({Exited{1}, ""}, 3, 2));
  const Changes changes = judge(turn);
  REQUIRE(changes.ends.size() == 4);
  CHECK(changes.ends[0].retry == Retry::usual);
  CHECK(changes.ends[1].retry == Retry::alone);
  CHECK(changes.ends[2].retry == Retry::alone);
  CHECK(changes.ends[3].retry == Retry::usual);
}

TEST_CASE("A worker that ends before its first trial is a failed launch", "[orchestrator]") {
  const Changes local = changes_of(gone({Exited{1}, "no module\n"}, 2, 0));
  REQUIRE(local.workers.size() == 1);
  const Changes::WorkerEnded& launch = local.workers.front();
  CHECK(launch.slot == "gpu-0");
  CHECK(launch.blame == LaunchBlame::failed);
  CHECK(launch.how == "exit code 1");
  CHECK(launch.lines == "no module\n");
  REQUIRE(launch.never_begun);
  CHECK(launch.never_begun->attempt.key == 1);
  REQUIRE(local.ends.size() == 2);
  CHECK(local.ends[0].device == Device::unknown);
  // A cluster's host has no slot of its own that would count it.
  const Changes job = changes_of(gone({Exited{1}, ""}, 2, 0), true);
  CHECK(job.ends[0].device == Device::failed);
  CHECK(job.ends[1].device == Device::unknown);
}

TEST_CASE("A claim that reaches no worker is cancelled, never started or withdrawn",
          "[orchestrator]") {
  Turn turn;
  turn.unstarted.push_back({attempt(1), true, ""});
  turn.unstarted.push_back({attempt(2), false, "slot gpu-0 was disabled before the trial started"});
  turn.vanished.push_back(attempt(3));
  const Changes changes = judge(turn);
  REQUIRE(changes.ends.size() == 2);
  CHECK(changes.ends[0].ending->outcome == Outcome::cancelled);
  CHECK(changes.ends[0].ending->reason == kCancelledByUser);
  CHECK(changes.ends[1].ending->outcome == Outcome::never_started);
  CHECK(changes.ends[1].ending->reason == "slot gpu-0 was disabled before the trial started");
  REQUIRE(changes.withdrawn.size() == 1);
  CHECK(changes.withdrawn.front().attempt.key == 3);
}

}  // namespace
}  // namespace petlab::orchestrator
