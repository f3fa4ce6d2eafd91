#include "orchestrator/running/run.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

namespace {

using Scripted = testing::ScriptedSweep;

}  // namespace

TEST_CASE("A sweep is trained once, and the second run trains nothing", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n  b: {seed: 2}\n  c: {seed: 3}\n");
  const auto first = sweep.run("--json");
  CHECK(first.exit_code == 0);
  CHECK(first.out.find("\"trained\":3") != std::string::npos);
  const auto second = sweep.run("--json");
  CHECK(second.exit_code == 0);
  CHECK(second.out.find("\"trained\":0") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 3);
  const auto plan = nlohmann::json::parse(sweep.plan("--json").out);
  REQUIRE(plan["trials"].size() == 3);
  CHECK(plan["trials"][0]["state"] == "done");
  CHECK(plan["trials"][0]["why"] == "finished in attempt 1");
}

TEST_CASE("One process per trial records the same as one process for all trials",
          "[orchestrator]") {
  const std::string users = "  a: {seed: 1}\n  b: {seed: 2}\n  c: {seed: 3}\n  d: {seed: 4}\n";
  const Scripted stays(users);
  const Scripted fresh(users);
  CHECK(stays.run().exit_code == 0);
  CHECK(fresh.run("--fresh-workers").exit_code == 0);
  const std::string sql = "SELECT trial_id, step, name, value FROM results ORDER BY 1, 2, 3";
  CHECK(results::query(stays.folder.path() / "sweep.db", sql).rows ==
        results::query(fresh.folder.path() / "sweep.db", sql).rows);
}

TEST_CASE("A trial that always crashes fails after its retries, and the others finish",
          "[orchestrator]") {
  const Scripted sweep(
      "  good: {seed: 1}\n  bad: {seed: 2, user: {behaviour: crash, attempts: 99}}\n");
  const auto result = sweep.run("--retries 2");
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("the worker ended with signal 6 (Aborted): about to crash in training (3 "
                        "of 3 attempts)") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed'") == 3);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 1);
  // The trial stays failed, and the exit code shows it again.
  CHECK(sweep.run().exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 4);
}

TEST_CASE("Three workers in a row that die before a trial starts disable the slot",
          "[orchestrator]") {
  std::string variants;
  for (int seed = 1; seed < 4; ++seed) {
    variants += fmt::format(
        "  v{0}: {{seed: {0}, user: {{behaviour: crash, phase: begin, attempts: 99}}}}\n", seed);
  }
  const Scripted sweep(variants);
  const auto result = sweep.run("--slots 1");
  CHECK(result.exit_code == 1);
  CHECK(result.err.find(
            "slot cpu-0 is disabled: three workers in a row exited before starting a trial: the "
            "worker ended with signal 6 (Aborted)\nabout to crash in begin") != std::string::npos);
}

TEST_CASE("Exit code 3 is a stop if there is a checkpoint, and otherwise a crash",
          "[orchestrator]") {
  const Scripted sweep(
      "  with: {seed: 1, user: {behaviour: exit_3, phase: end, checkpoint_every: 2}}\n"
      "  without: {seed: 2, user: {behaviour: exit_3, phase: end}}\n");
  CHECK(sweep.run("--retries 0 --slots 1 --fresh-workers").exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'stopped' AND "
                     "checkpoint_step IS NOT NULL") == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed' AND exit_code = 3 "
                     "AND checkpoint_step IS NULL") == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished' AND resume_step > "
                     "0") == 1);
}

TEST_CASE("A worker that breaks the protocol is killed and its trial fails", "[orchestrator]") {
  const Scripted sweep(
      "  rubbish: {seed: 1, user: {behaviour: rubbish}}\n  liar: {seed: 2, user: {behaviour: "
      "lie}}\n  good: {seed: 3}\n");
  const auto result = sweep.run();
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("found 'this is no event' at byte 0, expected a JSON object") !=
        std::string::npos);
  CHECK(result.err.find("seq is 8, must be 5") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 1);
}

TEST_CASE("A trial whose worker hangs is retried, and one over its time limit fails",
          "[orchestrator]") {
  const Scripted hangs("  a: {seed: 1, user: {behaviour: ignore_sigterm}}\n");
  const auto retried = hangs.run("--no-progress-limit 500ms");
  CHECK(retried.exit_code == 0);
  CHECK(retried.err.find("stalled: reported nothing for 0.5 s (--no-progress-limit)") !=
        std::string::npos);
  const Scripted slow("  a: {seed: 1, user: {behaviour: ignore_sigterm, attempts: 99}}\n");
  const auto timed_out = slow.run("--time-limit 500ms");
  CHECK(timed_out.exit_code == 1);
  CHECK(timed_out.err.find("timed out: ran longer than 0.5 s (--time-limit)") != std::string::npos);
}

TEST_CASE("The children of a worker end with it, and a flooded log stays bounded",
          "[orchestrator]") {
  const Scripted sweep(
      "  forks: {seed: 1, user: {behaviour: fork}}\n  floods: {seed: 2, user: {behaviour: "
      "flood_log}}\n");
  CHECK(sweep.run().exit_code == 0);
  const auto left = testing::run_command(
      fmt::format("grep -lz '^PETLAB_WORKER={}' /proc/[0-9]*/environ 2>/dev/null",
                  sweep.folder.path().string()));
  CHECK(left.out.empty());
}

TEST_CASE("SIGTERM stops a run at a checkpoint with exit code 3, and the next run resumes from it",
          "[orchestrator][kernel]") {
  const std::string users =
      "  a: {seed: 1, user: {steps: 100, step_ms: 20, checkpoint_every: 10}}\n";
  const Scripted stopped(users);
  testing::Background running([&] { return stopped.run(); });
  CHECK(stopped.until("SELECT count(*) FROM attempts WHERE started_at > 0"));
  ::kill(std::stoi(stopped.text("SELECT owner FROM attempts")), SIGTERM);
  CHECK(running.wait().exit_code == 3);
  CHECK(stopped.number("SELECT count(*) FROM attempts WHERE outcome = 'stopped'") == 1);
  CHECK(stopped.run().exit_code == 0);
  CHECK(stopped.number("SELECT count(*) FROM attempts") == 2);
  const Scripted whole(users);
  CHECK(whole.run().exit_code == 0);
  const std::string sql = "SELECT trial_id, step, name, value FROM results ORDER BY 1, 2, 3";
  CHECK(results::query(stopped.folder.path() / "sweep.db", sql).rows ==
        results::query(whole.folder.path() / "sweep.db", sql).rows);
}

TEST_CASE("A trial that crashes again right after a resume falls back to an earlier checkpoint",
          "[orchestrator]") {
  // Checkpoints at steps 2 and 4; a crash at step 6, before the next one.
  const std::string user = "  a: {seed: 1, user: {steps: 12, checkpoint_every: 2";
  const Scripted crashing(user + ", behaviour: crash, phase: training, attempts: 2}}\n");
  CHECK(crashing.run().exit_code == 0);
  CHECK(crashing.text("SELECT group_concat(step) FROM (SELECT ifnull(resume_step, 0) AS step FROM "
                      "attempts ORDER BY number)") == "0,4,2");
  const Scripted whole(user + "}}\n");
  CHECK(whole.run().exit_code == 0);
  const std::string sql = "SELECT step, name, value FROM results ORDER BY 1, 2";
  CHECK(results::query(crashing.folder.path() / "sweep.db", sql).rows ==
        results::query(whole.folder.path() / "sweep.db", sql).rows);
}

TEST_CASE("The exit code is never 0 with work left, however workers misbehave", "[orchestrator]") {
  std::mt19937 random(20240611);
  const std::vector<std::string> behaviours = {"finish", "crash",   "kill",          "exit",
                                               "error",  "rubbish", "fork_and_crash"};
  const std::vector<std::string> phases = {"begin", "loading", "training", "checkpointing", "end"};
  for (int round = 0; round < 4; ++round) {
    std::string users;
    for (int trial = 0; trial < 6; ++trial) {
      users += fmt::format(
          "  v{}: {{seed: {}, user: {{checkpoint_every: 2, behaviour: {}, phase: {}, attempts: "
          "{}}}}}\n",
          trial, trial, behaviours[random() % behaviours.size()], phases[random() % phases.size()],
          random() % 4);
    }
    const Scripted sweep(users);
    const auto result = sweep.run(fmt::format("--retries {}", random() % 3));
    const auto plan = nlohmann::json::parse(sweep.plan("--json").out);
    const bool all_done = std::all_of(plan["trials"].begin(), plan["trials"].end(),
                                      [](const auto& trial) { return trial["state"] == "done"; });
    INFO(users << result.err);
    CHECK((result.exit_code == 0) == all_done);
  }
}

TEST_CASE("Eight parallel runs on one database train each trial once, and all of them end",
          "[orchestrator]") {
  std::string users;
  for (int trial = 0; trial < 12; ++trial) {
    users += fmt::format("  v{}: {{seed: {}, user: {{steps: 2, step_ms: 2}}}}\n", trial, trial);
  }
  const Scripted sweep(users);
  const auto result = sweep.petlab(
      "--version",
      fmt::format("for run in 1 2 3 4 5 6 7 8; do timeout 60 {} run sweep.yaml --quiet "
                  "--slots 3 --worker {} & runs=\"$runs $!\"; done; "
                  "for run in $runs; do wait $run || echo ended with $?; done;",
                  testing::program("petlab").string(),
                  testing::program("scripted-worker").string()));
  CHECK(result.out.find("ended with") == std::string::npos);
  CHECK(result.err.empty());
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 12);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 12);
}

TEST_CASE("The exit code follows from the remaining work", "[orchestrator]") {
  orchestrator::RunResult result;
  result.status.total = 3;
  result.status.done = 3;
  CHECK(orchestrator::exit_code(result) == 0);
  result.interrupted = true;  // too late to leave work
  CHECK(orchestrator::exit_code(result) == 0);
  result.status.done = 2;
  CHECK(orchestrator::exit_code(result) == 3);
  result.interrupted = false;
  CHECK(orchestrator::exit_code(result) == 1);
  result.status.failed = 1;
  CHECK(orchestrator::exit_code(result) == 1);
  result.status.failed = 0;
  result.status.cancelled = 1;
  CHECK(orchestrator::exit_code(result) == 0);
}
