#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "orchestrator/planning/gang_rule.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/running/shapes.h"
#include "results/attempt.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;
using namespace petlab::orchestrator;
using Catch::Matchers::Contains;

namespace {

// Trials of four slow steps with seeds 1, 2, …. `settings`: `user` of the trials in this order; the
// others have none of their own.
std::string trials(int count, const std::vector<std::string>& settings = {}) {
  std::string text;
  for (int seed = 1; seed <= count; ++seed) {
    const std::size_t at = static_cast<std::size_t>(seed) - 1;
    text += fmt::format("  v{0}: {{seed: {0}, user: {{step_ms: 40, checkpoint_every: 1{1}}}}}\n",
                        seed, at < settings.size() ? settings[at] : "");
  }
  return text;
}

// The number of attempts that ended so.
std::int64_t count(const testing::ScriptedSweep& sweep, const std::string& condition) {
  return sweep.number("SELECT count(*) FROM attempts WHERE " + condition);
}

constexpr const char* kOverlaps =
    "SELECT count(*) FROM attempts a JOIN attempts b ON a.trial < b.trial AND a.started_at < "
    "b.ended_at AND b.started_at < a.ended_at";
constexpr const char* kResults = "SELECT trial_id, step, name, value FROM results ORDER BY 1, 2, 3";

}  // namespace

TEST_CASE("A worker trains a gang's trials at the same time, with the results of each alone",
          "[orchestrator]") {
  const testing::ScriptedSweep together(trials(6));
  const testing::ScriptedSweep alone(trials(6));
  REQUIRE(together.run("--slots 1 --gang 3").exit_code == 0);
  REQUIRE(alone.run("--slots 1").exit_code == 0);
  CHECK(results::query(together.database(), kResults).rows ==
        results::query(alone.database(), kResults).rows);
  CHECK(count(together, "outcome = 'finished'") == 6);
  // Each trial overlaps with two others of its gang.
  CHECK(together.number(kOverlaps) == 6);
  CHECK(alone.number(kOverlaps) == 0);
}

TEST_CASE("Trials that differ in what must be equal are no gang", "[orchestrator]") {
  const testing::ScriptedSweep sweep(
      "  v1: {seed: 1, user: {step_ms: 40}}\n  v2: {seed: 2, user: {step_ms: 40}}\n"
      "  w1: {seed: 1, backbone: ./other, user: {step_ms: 40}}\n"
      "  w2: {seed: 2, backbone: ./other, user: {step_ms: 40}}\n");
  testing::write_unread_backbone(sweep.folder.path() / "other");
  sweep.folder.write("other/model.safetensors", "other weights\n");
  REQUIRE(sweep.run("--slots 1 --gang 4").exit_code == 0);
  CHECK(sweep.number(kOverlaps) == 2);
}

TEST_CASE("Trials at different steps are no gang", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(3, {", steps: 30"}));
  testing::Background run([&] { return sweep.run("--slots 1 --only seed=1"); });
  REQUIRE(sweep.until("SELECT count(*) = 1 FROM attempts WHERE checkpoint_step > 0"));
  const std::string id = sweep.text("SELECT trial_id FROM trials WHERE seed = 1");
  CHECK(sweep.petlab("cancel " + id).exit_code == 0);
  CHECK(run.wait().exit_code == 0);
  CHECK(sweep.petlab("retry " + id).exit_code == 0);
  REQUIRE(sweep.run("--slots 1 --gang 3").exit_code == 0);
  CHECK(count(sweep, "outcome = 'finished' AND resume_step > 0") == 1);
  CHECK(count(sweep, "outcome = 'finished'") == 3);
  CHECK(sweep.number(kOverlaps) == 1);  // the trials that start from the beginning
}

TEST_CASE("What a trial needs is not learned from its gang", "[orchestrator]") {
  Shapes shapes(std::vector<sweeps::SweepTrial>(1));
  results::AttemptFacts attempt;
  attempt.outcome = results::Outcome::finished;
  attempt.started_at = 100;
  attempt.ended_at = 180;
  attempt.device_memory_mib = 4000;
  attempt.numerics = R"({"version": 4, "gang": 4})";
  shapes.learn(0, {attempt});
  CHECK_FALSE(shapes.memory_mib(0));
  CHECK_FALSE(shapes.seconds(0));
  attempt.numerics = R"({"version": 4, "gang": 1})";
  shapes.learn(0, {attempt});
  CHECK(shapes.memory_mib(0) == 4000);
  CHECK(shapes.seconds(0) == 80);
}

TEST_CASE("Gangs share the last trials equally", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(6));
  REQUIRE(sweep.run("--slots 2 --gang 8").exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts GROUP BY device LIMIT 1") == 3);
  CHECK(sweep.number("SELECT count(DISTINCT device) FROM attempts") == 2);
}

TEST_CASE("A gang whose worker crashes is tried again one by one, and only the culprit fails",
          "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(4, {"", ", behaviour: crash, attempts: 99"}));
  CHECK(sweep.run("--slots 1 --gang 4 --retries 1").exit_code == 1);
  CHECK(count(sweep, "outcome = 'finished'") == 3);
  CHECK(count(sweep,
              "outcome = 'stopped' AND reason LIKE '%with 4 trials running: retrying each "
              "alone'") == 4);
  CHECK(count(sweep, "outcome = 'crashed'") == 2);
  CHECK(sweep.number("SELECT count(DISTINCT trial) FROM attempts WHERE outcome = 'crashed'") == 1);
}

TEST_CASE("A gang with a trial that hangs is tried again one by one", "[orchestrator]") {
  const testing::ScriptedSweep sweep(
      trials(3, {"", "", ", behaviour: hang, phase: begin, attempts: 99"}));
  // The trial that hangs before it begins is the last of the line, so another is at its front.
  CHECK(sweep.run("--slots 1 --gang 3 --retries 0 --no-progress-limit 700ms").exit_code == 1);
  CHECK(count(sweep, "outcome = 'finished'") == 2);
  CHECK(sweep.number("SELECT count(DISTINCT trial) FROM attempts WHERE outcome = 'stalled'") == 1);
}

TEST_CASE("A time limit holds for a trial alone", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(2, {", steps: 400", ""}));
  CHECK(sweep.run("--slots 1 --gang 2 --time-limit 1s").exit_code == 1);
  CHECK(count(sweep, "outcome = 'finished'") == 1);
  CHECK(count(sweep, "outcome = 'timed_out'") == 1);
}

TEST_CASE("A failed trial leaves its gang, and the others continue", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(3, {", behaviour: error, attempts: 99"}));
  CHECK(sweep.run("--slots 1 --gang 3").exit_code == 1);
  CHECK(count(sweep, "outcome = 'finished' AND number = 1") == 2);
  CHECK(count(sweep, "outcome = 'failed'") == 1);
}

TEST_CASE("A gang that fails together is tried again one by one", "[orchestrator]") {
  const std::string fails = ", behaviour: gang";
  const testing::ScriptedSweep sweep(trials(3, {fails, fails, fails}));
  CHECK(sweep.run("--slots 1 --gang 3 --retries 0").exit_code == 0);
  CHECK(count(sweep, "outcome = 'failed' AND number = 1") == 3);
  CHECK(count(sweep, "outcome = 'finished' AND number = 2") == 3);
  CHECK(sweep.number(std::string(kOverlaps) + " AND a.number = 2") == 0);
}

TEST_CASE("A cancelled trial leaves its gang, and the others continue", "[orchestrator]") {
  // A worker that cannot stop a single trial stops, and the others resume.
  const bool stops_whole = GENERATE(false, true);
  const testing::ScriptedSweep sweep(trials(3, {", steps: 100", ", steps: 50", ", steps: 50"}));
  testing::Background run(
      [&] { return sweep.run("--slots 1 --gang 3", stops_whole ? "SCRIPTED_STOPS_WHOLE=1" : ""); });
  REQUIRE(sweep.until("SELECT count(*) = 3 FROM attempts WHERE checkpoint_step > 0"));
  const std::string id =
      sweep.text("SELECT trial_id FROM trials WHERE json_extract(user, '$.steps') = 100");
  CHECK(sweep.petlab("cancel " + id).exit_code == 0);
  CHECK(run.wait().exit_code == 0);
  CHECK(count(sweep, "outcome = 'cancelled'") == 1);
  CHECK(sweep.number("SELECT count(DISTINCT trial) FROM attempts WHERE outcome = 'finished'") == 2);
  CHECK(count(sweep, "outcome = 'stopped'") == (stops_whole ? 2 : 0));
  // The trial resumes from the checkpoint that it wrote last.
  const std::int64_t step =
      sweep.number("SELECT checkpoint_step FROM attempts WHERE outcome = 'cancelled'");
  CHECK(sweep.petlab("retry " + id).exit_code == 0);
  CHECK(sweep.run("--slots 1").exit_code == 0);
  CHECK(sweep.number("SELECT resume_step FROM attempts WHERE number = 2 AND outcome = 'finished' "
                     "AND trial = (SELECT trial FROM attempts WHERE outcome = 'cancelled')") ==
        step);
}

TEST_CASE("A worker that does not stop a cancelled trial is stopped", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(2, {", behaviour: hang, attempts: 99", ", steps: 50"}));
  testing::Background run([&] { return sweep.run("--slots 1 --gang 2"); });
  REQUIRE(sweep.until("SELECT count(*) = 2 FROM attempts WHERE checkpoint_step > 0"));
  const std::string id =
      sweep.text("SELECT trial_id FROM trials WHERE json_extract(user, '$.behaviour') = 'hang'");
  CHECK(sweep.petlab("cancel " + id).exit_code == 0);
  CHECK(run.wait().exit_code == 0);
  CHECK(count(sweep, "outcome = 'cancelled'") == 1);
  CHECK(count(sweep, "outcome = 'finished'") == 1);
}

TEST_CASE("A trial that its worker stops unasked counts as crashed", "[orchestrator]") {
  const testing::ScriptedSweep sweep(trials(2, {", behaviour: stop_unasked, attempts: 99"}));
  CHECK(sweep.run("--slots 1 --retries 1").exit_code == 1);
  CHECK(count(sweep, "outcome = 'crashed'") == 2);
  CHECK(sweep.text("SELECT DISTINCT reason FROM attempts WHERE outcome = 'crashed'") ==
        "its worker stopped it, but petlab did not ask for it");
  CHECK(count(sweep, "outcome = 'finished'") == 1);
}

TEST_CASE("A trial whose gang failed runs alone once, without a failure that counts",
          "[orchestrator]") {
  results::TrialFacts facts;
  facts.trial_id = "0123456789abcdef";
  results::AttemptFacts attempt;
  attempt.attempt = {1, facts.trial_id, 1};
  attempt.outcome = results::Outcome::failed;
  attempt.kind = "gang";
  facts.attempts = {attempt};
  CHECK_FALSE(results::is_final_failure(attempt));
  CHECK(results::counted_failures(facts) == 0);
  CHECK_FALSE(results::has_failed(facts, 0));
  PlanContext context;
  context.runs = "/nowhere";
  const TrialPlan plan = plan_trial({}, facts, context);
  CHECK(plan.state == sweeps::TrialState::interrupted);
  CHECK(plan.is_to_be_alone);
  // A worker that says so again, of a trial alone, is wrong.
  attempt.attempt.number = 2;
  facts.attempts.push_back(attempt);
  CHECK(results::counted_failures(facts) == 1);
  CHECK(results::has_failed(facts, 0));
}

TEST_CASE("A worker says which trials it can train together", "[orchestrator]") {
  const GangRule rule = parse_gang_rule(nlohmann::json::parse(
      R"({"equal": ["backbone", "training.compute"], "alone": {"module.kind": ["full_finetuning"]}})"));
  std::vector<sweeps::SweepTrial> sweep(5);
  for (sweeps::SweepTrial& trial : sweep) {
    trial.config.backbone = "roberta";
    trial.config.module.kind = "adapter";
  }
  sweep[1].config.module.kind = "lora";
  sweep[2].config.backbone = "bert";
  sweep[3].config.training.compute = sweeps::ComputeType::bf16;
  sweep[4].config.module.kind = "full_finetuning";
  using Groups = std::vector<std::optional<std::size_t>>;
  CHECK(gang_groups(rule, sweep) == Groups{0, 0, 1, 2, std::nullopt});
  const auto refused = [](const char* text) -> std::string {
    try {
      parse_gang_rule(nlohmann::json::parse(text));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused("true") == "gangs is true, must be an object");
  CHECK(refused(R"({"equal": [1]})") ==
        "an entry of gangs.equal is 1, must be the name of a field");
  CHECK(refused(R"({"alone": {"seed": 1}})") == "gangs.alone.seed is 1, must be a list of values");
  CHECK(
      refused(R"({"equal": ["user.any", "training.computee"]})") ==
      "gangs names the field 'training.computee', which no trial has (nearest: training.compute)");
  CHECK(refused(R"({"same": []})") == "gangs has a key 'same', expected equal or alone");
}

TEST_CASE("Gangs are formed where the worker and the run allow them", "[orchestrator]") {
  const GangRule rule;
  const auto most = [&](std::int64_t size, bool on_gpus) {
    return most_in_gang({.size = size, .on_gpus = on_gpus}, rule, "w");
  };
  CHECK(most(kAutomaticGang, false) == 1);
  CHECK(most(kAutomaticGang, true) == kGangOnGpu);
  CHECK(most(5, false) == 5);
  CHECK(most_in_gang({.size = kAutomaticGang, .on_gpus = true}, std::nullopt, "w") == 1);
  CHECK(most_in_gang({.size = kAutomaticGang, .on_gpus = true, .pack = 4}, rule, "w") == 1);
  CHECK_THROWS_WITH(most_in_gang({.size = 5}, std::nullopt, "w --describe ended"),
                    "--gang 5: w --describe ended");
  CHECK_THROWS_WITH(most_in_gang({.size = 5, .pack = 2}, rule, "w"), Contains("--pack"));
  CHECK_THROWS_WITH(most_in_gang({.size = 5, .fresh_workers = true}, rule, "w"),
                    Contains("--fresh-workers"));
  CHECK_THROWS_WITH(most_in_gang({.size = 5, .detach = true}, rule, "w"), Contains("--detach"));
}
