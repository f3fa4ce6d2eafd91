// Commands that a user runs in another terminal while a sweep runs.
#include "orchestrator/recovery/control.h"

#include <nlohmann/json.hpp>

#include "protocol/decisions.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::Background;
using testing::ScriptedSweep;

namespace {

std::string id_of(const ScriptedSweep& sweep, int seed) {
  return sweep.text(fmt::format("SELECT trial_id FROM trials WHERE seed = {}", seed));
}
const char* const kDb = "--db sweep.db";

}  // namespace

TEST_CASE("A running trial is cancelled within seconds, and retried later", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  long: {seed: 1, user: {steps: 2000, step_ms: 20, checkpoint_every: 10}}\n"
      "  short: {seed: 2}\n");
  Background run([&] { return sweep.run(); });
  REQUIRE(
      sweep.until("SELECT count(*) FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                  "t.seed = 1 AND a.checkpoint_step > 0"));
  const std::string id = id_of(sweep, 1);
  const auto began = std::chrono::steady_clock::now();
  const auto cancel = sweep.petlab(fmt::format("cancel {} {}", id.substr(0, 8), kDb));
  CHECK(cancel.exit_code == 0);
  CHECK(cancel.out.find(id + " cancelled; asked attempt 1, which runs on") == 0);
  const auto& result = run.wait();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));
  CHECK(result.exit_code == 0);
  CHECK(result.err.find(id + " cancelled: cancelled after attempt 1") != std::string::npos);
  CHECK(sweep.text("SELECT outcome FROM attempts a JOIN trials t ON t.key = a.trial WHERE t.seed "
                   "= 1") == "cancelled");

  const auto shown = sweep.petlab(fmt::format("show {} {}", id, kDb));
  CHECK(shown.out.find("  state   cancelled: cancelled after attempt 1\n") != std::string::npos);
  CHECK(shown.out.find("attempts\n  1  cancelled, begun ") != std::string::npos);
  const auto done = sweep.petlab(fmt::format("cancel {} {}", id_of(sweep, 2), kDb));
  CHECK(done.exit_code == 1);
  CHECK(done.err.find("finished in attempt 1: its result is kept") != std::string::npos);

  CHECK(sweep.petlab(fmt::format("retry {} {}", id, kDb)).out == id + " will be retried\n");
  const auto plan = nlohmann::json::parse(sweep.plan("--json").out);
  CHECK(plan["trials"][0]["state"] == "interrupted");
  CHECK(plan["trials"][0]["why"].get<std::string>().find("resumes from step") != std::string::npos);
}

TEST_CASE("Waiting trials are cancelled, and come back during the same run", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  first: {seed: 1, user: {steps: 150, step_ms: 20}}\n"
      "  bad: {seed: 2, user: {behaviour: error, attempts: 1}}\n"
      "  waits: {seed: 3}\n");
  Background run([&] { return sweep.run("--slots 1 --retries 0"); });
  REQUIRE(sweep.until("SELECT count(*) FROM progress"));
  CHECK(sweep.petlab(fmt::format("cancel {} {} {}", id_of(sweep, 2), id_of(sweep, 3), kDb))
            .exit_code == 0);
  CHECK(sweep.petlab(fmt::format("retry {} {}", id_of(sweep, 2), kDb)).exit_code == 0);
  const auto& result = run.wait();
  CHECK(result.exit_code == 1);
  CHECK(result.err.find(id_of(sweep, 3) + " cancelled: cancelled before any attempt") !=
        std::string::npos);
  CHECK(result.err.find(id_of(sweep, 2) + " failed: attempt 1 failed: the script says so") !=
        std::string::npos);
}

TEST_CASE("A run in progress retries a failed trial on request", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  bad: {seed: 2, user: {behaviour: error, attempts: 1}}\n"
      "  long: {seed: 1, user: {steps: 200, step_ms: 20}}\n");
  Background run([&] { return sweep.run("--slots 2 --retries 0"); });
  REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE outcome = 'failed'"));
  CHECK(sweep.petlab(fmt::format("retry {} {}", id_of(sweep, 2), kDb)).exit_code == 0);
  const auto& result = run.wait();
  CHECK(result.exit_code == 0);
  CHECK(result.err.find(id_of(sweep, 2) + " is pending again: attempt 1 failed") !=
        std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 2);
  const auto again = sweep.petlab(fmt::format("retry {} {}", id_of(sweep, 2), kDb));
  CHECK(again.exit_code == 1);
  CHECK(again.err.find("finished in attempt 2: nothing to retry") != std::string::npos);
}

TEST_CASE("A trial that runs on another host is retried only after it is declared dead",
          "[orchestrator]") {
  const ScriptedSweep sweep("  a: {seed: 1}\n");
  CHECK(sweep.run().exit_code == 0);
  const std::string id = id_of(sweep, 1);
  const std::string how = GENERATE_COPY("retry --declare-dead " + id, "retry --dead-host far");
  CHECK(testing::run_command(fmt::format("rm -r {0}/sweep.db* {0}/sweep.runs/{1}/1/events.jsonl; "
                                         "sed -i 's/\"host\":\"[^\"]*\"/\"host\":\"far\"/; "
                                         "s/\"boot_id\":\"[^\"]*\"/\"boot_id\":\"other\"/' "
                                         "{0}/sweep.runs/{1}/1/attempt.jsonl",
                                         sweep.folder.path().string(), id))
            .exit_code == 0);
  CHECK(sweep.petlab("db rebuild --db sweep.db").exit_code == 0);
  const auto refused = sweep.petlab(fmt::format("retry {} {}", id, kDb));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err == id + " attempt 1 runs on far, according to its last record; if it has "
                            "ended, pass --declare-dead\n");
  const auto run = sweep.run();
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("use `petlab retry --dead-host far`") != std::string::npos);
  CHECK(sweep.petlab(fmt::format("retry --dead-host near {}", kDb)).out ==
        "no attempt on near is open\n");
  const auto declared = sweep.petlab(fmt::format("{} {}", how, kDb));
  CHECK(declared.out == id + " will be retried; attempt 1 is recorded as lost\n");
  CHECK(sweep.run().exit_code == 0);
  CHECK(sweep.number("SELECT attempt FROM results LIMIT 1") == 2);
}

TEST_CASE("petlab stop lets running trials finish, and with --now stops them at a checkpoint",
          "[orchestrator]") {
  const ScriptedSweep sweep(
      "  a: {seed: 1, user: {steps: 60, step_ms: 20, checkpoint_every: 5}}\n"
      "  b: {seed: 2, user: {steps: 600, step_ms: 20, checkpoint_every: 5}}\n");
  CHECK(sweep.petlab("stop sweep.yaml").exit_code == 2);  // nothing has run here yet
  Background first([&] { return sweep.run("--slots 1"); });
  REQUIRE(sweep.until("SELECT count(*) FROM progress"));
  const auto stop = sweep.petlab("stop sweep.yaml");
  CHECK(stop.out.find("petlab run of sweep scripted (process ") == 0);
  CHECK(sweep.petlab("stop sweep.yaml").exit_code == 0);  // repeating it does not force the stop
  CHECK(first.wait().exit_code == 3);
  CHECK(sweep.text("SELECT outcome FROM attempts") == "finished");
  CHECK(sweep.petlab("stop sweep.yaml").out.find("no petlab run is active in") == 0);
  Background second([&] { return sweep.run("--slots 1"); });
  REQUIRE(
      sweep.until("SELECT count(*) FROM attempts WHERE checkpoint_step > 0 AND number = 1 AND "
                  "outcome = 'open'"));
  CHECK(sweep.petlab("stop --now --runs sweep.runs").exit_code == 0);
  CHECK(second.wait().exit_code == 3);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'stopped'") == 1);
}

TEST_CASE("status, show and logs follow a sweep while it runs", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  a: {seed: 1, user: {steps: 100, step_ms: 20}}\n"
      "  b: {seed: 2, user: {behaviour: crash, attempts: 99}}\n");
  Background run([&] { return sweep.run("--retries 0"); });
  REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE outcome = 'crashed'"));
  REQUIRE(
      sweep.until("SELECT count(*) FROM progress p JOIN attempts a ON a.key = p.attempt JOIN "
                  "trials t ON t.key = a.trial WHERE t.seed = 1"));
  const auto status =
      nlohmann::json::parse(sweep.petlab("status sweep.yaml --json --retries 0").out);
  CHECK(status["sweeps"][0]["states"] == nlohmann::json({{"running", 1}, {"failed", 1}}));
  CHECK(status["orchestrators"].size() == 1);
  REQUIRE(status["running"].size() == 1);
  CHECK(status["running"][0]["of"] == 100);
  const auto text = sweep.petlab("status sweep.yaml --retries 0");
  CHECK(text.out.find("sweep scripted: 2 trials: 1 running, 1 failed\n") != std::string::npos);
  CHECK(
      sweep.petlab(fmt::format("show {} {}", id_of(sweep, 1), kDb)).out.find("state   running: ") !=
      std::string::npos);
  const auto logs = sweep.petlab(fmt::format("logs {} {}", id_of(sweep, 2), kDb));
  CHECK(logs.out == "about to crash in training\n");
  // Following ends with the attempt.
  const auto followed = sweep.petlab(fmt::format("logs -f {} {}", id_of(sweep, 1), kDb));
  CHECK(followed.exit_code == 0);
  CHECK(followed.err.find("the worker has printed nothing") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 1);
  CHECK(run.wait().exit_code == 1);
  const auto shown = sweep.petlab(fmt::format("show --retries 0 {} {}", id_of(sweep, 2), kDb));
  CHECK(shown.out.find("state   failed: attempt 1 crashed: the worker ended with signal 6") !=
        std::string::npos);
  CHECK(shown.out.find("last lines of its log:\n    about to crash in training\n") !=
        std::string::npos);
  const auto unknown = sweep.petlab(fmt::format("show xyz {}", kDb));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("trial xyz is not in sweep.db") != std::string::npos);
}

TEST_CASE("Run with --rerun stale replaces the results in the views, and a rebuilt database agrees",
          "[orchestrator]") {
  const ScriptedSweep sweep("  a: {seed: 1}\n  b: {seed: 2}\n");
  CHECK(sweep.run().exit_code == 0);
  const std::string newer = "SCRIPTED_NUMERICS=2";
  const auto stays = sweep.run("--json", newer);
  CHECK(stays.exit_code == 0);
  CHECK(stays.out.find(
            "\"stale\":2,\"failed\":0,\"cancelled\":0,\"stopped_early\":0,\"trained\":0") !=
        std::string::npos);
  const std::string why = "numerics version was 1, is 2 now (--rerun stale reruns it)";
  const std::string worker = "--worker " + testing::program("scripted-worker").string();
  CHECK(sweep.petlab("status sweep.yaml " + worker, newer)
            .out.find("sweep scripted: 2 trials: 2 stale\n  2 stale: " + why + "\n") !=
        std::string::npos);
  const std::string show = fmt::format("show {} {} {}", id_of(sweep, 1), kDb, worker);
  CHECK(sweep.petlab(show, newer).out.find("state   stale: " + why + "\n") != std::string::npos);
  CHECK(sweep.petlab(show).out.find("state   done: ") != std::string::npos);
  const auto again = sweep.run("--rerun stale --json", newer);
  CHECK(again.exit_code == 0);
  CHECK(again.out.find(
            "\"stale\":0,\"failed\":0,\"cancelled\":0,\"stopped_early\":0,\"trained\":2") !=
        std::string::npos);
  const std::string sql = "SELECT count(*) FROM results WHERE attempt = 2 AND numerics LIKE '%2%'";
  const std::int64_t rows = sweep.number("SELECT count(*) FROM results");
  CHECK(sweep.number(sql) == rows);
  CHECK(sweep.run("--rerun stale --json", newer).out.find("\"trained\":0") != std::string::npos);
  CHECK(sweep.petlab("db rebuild --db rebuilt.db --runs sweep.runs").exit_code == 0);
  const std::string all = "SELECT trial_id, attempt, seq, value FROM results ORDER BY 1, 2, 3";
  CHECK(results::query(sweep.folder.path() / "rebuilt.db", all).rows ==
        results::query(sweep.database(), all).rows);
}

TEST_CASE("Run with --rerun failed retries failed trials, and no others", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  good: {seed: 1}\n  bad: {seed: 2, user: {behaviour: error, attempts: 1}}\n");
  CHECK(sweep.run().exit_code == 1);
  CHECK(sweep.run().exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 2);
  CHECK(sweep.run("--rerun failed").exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 2);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 3);
}
