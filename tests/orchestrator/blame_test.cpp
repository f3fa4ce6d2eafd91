#include "orchestrator/planning/blame.h"

#include "tests/support/catch.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

using enum results::Outcome;

const UnfinishedAttempt kBegun = {true, false, Verdict::none};
const UnfinishedAttempt kCheckpointed = {true, true, Verdict::none};
const UnfinishedAttempt kUnbegun = {false, false, Verdict::none};

std::vector<results::Outcome> outcomes(const Blame& blame) {
  std::vector<results::Outcome> all;
  for (const results::Ending& ending : blame.endings) all.push_back(ending.outcome);
  return all;
}
using OutcomeList = std::vector<results::Outcome>;

}  // namespace

TEST_CASE("A crash is blamed on the only trial that had started", "[orchestrator]") {
  const Blame blame = blame_for({Killed{6}, "one\nlast words\n"},
                                {false, true, {}, {}, true, false}, {kBegun, kUnbegun, kUnbegun});
  CHECK(outcomes(blame) == OutcomeList{crashed, never_started, never_started});
  CHECK(blame.endings[0].reason == "the worker ended with signal 6 (Aborted): last words");
  CHECK(blame.endings[0].signal == 6);
  CHECK(blame.endings[0].log_tail == "one\nlast words\n");
  CHECK(blame.endings[1].reason ==
        "the worker ended with signal 6 (Aborted) before it started this trial");
  CHECK(blame.endings[1].log_tail.empty());
  CHECK(blame.to_try_alone.empty());
  CHECK_FALSE(blame.never_begun);
  CHECK(blame.launch == LaunchBlame::none);
}

TEST_CASE("A crash with several started trials blames none and retries each alone",
          "[orchestrator]") {
  const Blame blame =
      blame_for({Exited{1}, ""}, {false, true, {}, {}, true, false}, {kBegun, kUnbegun, kBegun});
  CHECK(outcomes(blame) == OutcomeList{stopped, never_started, stopped});
  CHECK(blame.to_try_alone == std::vector<std::size_t>{0, 2});
  CHECK(blame.endings[0].reason ==
        "the worker ended with exit code 1 with 2 trials running: retrying each alone");
}

TEST_CASE("Several started trials over a limit are each retried alone", "[orchestrator]") {
  UnfinishedAttempt over = kBegun;
  over.verdict = Verdict::stalled;
  UnfinishedAttempt cancelled = kBegun;
  cancelled.verdict = Verdict::cancelled;
  const Blame blame = blame_for({Killed{9}, ""}, {true, true, {}, {}, true, false},
                                {over, kBegun, cancelled, kUnbegun});
  CHECK(outcomes(blame) ==
        OutcomeList{stopped, stopped, results::Outcome::cancelled, never_started});
  CHECK(blame.to_try_alone == std::vector<std::size_t>{0, 1});
  CHECK(blame.endings[1].reason == "over a limit with 3 trials running: retrying each alone");
}

TEST_CASE("The last trial of a gang over a limit is retried alone, and then judged",
          "[orchestrator]") {
  UnfinishedAttempt over = kBegun;
  over.verdict = Verdict::timed_out;
  const EndedWorkerFacts worker{true, true, std::chrono::seconds(2), {}, true, true};
  over.in_gang = true;
  const Blame last = blame_for({Killed{9}, ""}, worker, {over});
  CHECK(outcomes(last) == OutcomeList{stopped});
  CHECK(last.to_try_alone == std::vector<std::size_t>{0});
  CHECK(last.endings[0].reason == "over a limit as the last trial of its gang: retrying it alone");
  over.in_gang = false;
  const Blame alone = blame_for({Killed{9}, ""}, worker, {over});
  CHECK(outcomes(alone) == OutcomeList{timed_out});
  CHECK(alone.to_try_alone.empty());
}

TEST_CASE("Exit code 3 is a stop with a checkpoint, and a crash without one", "[orchestrator]") {
  CHECK(outcomes(blame_for({Exited{3}, ""}, {false, true, {}, {}, true, false}, {kCheckpointed})) ==
        OutcomeList{stopped});
  CHECK(outcomes(blame_for({Exited{3}, ""}, {false, true, {}, {}, true, false}, {kBegun})) ==
        OutcomeList{crashed});
}

TEST_CASE("An ending caused by the run or the user is not blamed on a trial", "[orchestrator]") {
  const Blame stop =
      blame_for({Exited{3}, ""}, {true, false, {}, {}, true, false}, {kBegun, kUnbegun});
  CHECK(outcomes(stop) == OutcomeList{stopped, never_started});
  CHECK(stop.endings[0].reason == "asked to stop");
  CHECK(stop.launch == LaunchBlame::none);
  CHECK_FALSE(stop.never_begun);

  const std::chrono::milliseconds limit(1500);
  const auto verdict_of = [&](bool begun, Verdict verdict) {
    return blame_for({Killed{9}, "x"}, {true, begun, limit, limit, true, false},
                     {{begun, false, verdict}});
  };
  CHECK(outcomes(verdict_of(true, Verdict::timed_out)) == OutcomeList{timed_out});
  CHECK(verdict_of(true, Verdict::timed_out).endings[0].reason ==
        "ran longer than 1.5 s (--time-limit)");
  CHECK(outcomes(verdict_of(true, Verdict::stalled)) == OutcomeList{stalled});
  CHECK(verdict_of(true, Verdict::stalled).endings[0].reason ==
        "reported nothing for 1.5 s (--no-progress-limit)");
  CHECK(outcomes(verdict_of(true, Verdict::cancelled)) == OutcomeList{cancelled});
  CHECK(outcomes(verdict_of(false, Verdict::timed_out)) == OutcomeList{timed_out});
  CHECK(verdict_of(false, Verdict::stalled).endings[0].reason == "the worker never started it");
  CHECK(outcomes(verdict_of(false, Verdict::cancelled)) == OutcomeList{cancelled});
  CHECK(verdict_of(false, Verdict::timed_out).launch == LaunchBlame::none);
}

TEST_CASE("A worker that dies before its first trial means a failed launch and a suspect",
          "[orchestrator]") {
  const Blame blame = blame_for({Exited{1}, "no such library"}, {false, false, {}, {}, true, false},
                                {kUnbegun, kUnbegun});
  CHECK(outcomes(blame) == OutcomeList{never_started, never_started});
  CHECK(blame.never_begun == 0);
  CHECK(blame.launch == LaunchBlame::failed);
  // A worker that had finished other trials was launched properly, but its next trial is still
  // suspect.
  const Blame later = blame_for({Exited{1}, ""}, {false, true, {}, {}, true, false}, {kUnbegun});
  CHECK(later.never_begun == 0);
  CHECK(later.launch == LaunchBlame::none);
  CHECK(blame_for({Exited{0}, ""}, {false, false, {}, {}, true, false}, {}).launch ==
        LaunchBlame::none);
}

TEST_CASE("A trial is not blamed for what the queue does to its job", "[orchestrator]") {
  const auto queue_ends = [](decltype(WorkerEnd::how) how, const UnfinishedAttempt& attempt,
                             bool any_begun) {
    return blame_for({std::move(how), ""}, {false, any_begun, {}, {}}, {attempt});
  };
  const Blame preempted = queue_ends(TakenAway{"preempted"}, kBegun, true);
  CHECK(outcomes(preempted) == OutcomeList{stopped});
  CHECK(preempted.endings[0].reason == "preempted");
  const Blame waiting = queue_ends(TakenAway{"preempted"}, kUnbegun, false);
  CHECK(outcomes(waiting) == OutcomeList{never_started});
  CHECK(waiting.launch == LaunchBlame::taken_away);
  CHECK_FALSE(waiting.never_begun);
  CHECK(outcomes(queue_ends(OutOfTime{"out of time"}, kCheckpointed, true)) ==
        OutcomeList{stopped});
  const Blame too_slow = queue_ends(OutOfTime{"out of time"}, kBegun, true);
  CHECK(outcomes(too_slow) == OutcomeList{timed_out});
  CHECK(too_slow.endings[0].reason == "out of time before a checkpoint");
  CHECK(outcomes(queue_ends(OutOfTime{"out of time"}, kUnbegun, false)) == OutcomeList{timed_out});
  CHECK(queue_ends(OutOfTime{"out of time"}, kUnbegun, false).launch == LaunchBlame::none);
  CHECK(queue_ends(Refused{"invalid account"}, kUnbegun, false).launch == LaunchBlame::refused);
}

TEST_CASE("Three failed launches in a row disable the slot or stop the run", "[orchestrator]") {
  const auto after = [](int of_slot, int of_run, bool any_runs, bool queue) {
    return after_launch_failure({of_slot, of_run, 2, any_runs, queue});
  };
  CHECK_FALSE(after(2, 2, false, false).stop_slot);
  CHECK(after(3, 3, false, false).stop_slot);
  CHECK_FALSE(after(3, 3, false, false).stop_run);
  // The count of a released slot restarts, so the run allows three failures for each of its slots.
  CHECK(after(1, 6, false, false).stop_run);
  CHECK_FALSE(after(1, 5, false, false).stop_run);
  CHECK_FALSE(after(1, 6, true, false).stop_run);
  // Failed launches in a queue are counted across slots, since they have a common cause.
  CHECK(after(1, 3, false, true).stop_run);
  CHECK_FALSE(after(3, 3, false, true).stop_slot);
}
