// `run`, `plan`, `status` and reports agree on a trial's state.
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

namespace {

// The only trial's state as shown by plan, status and a report.
std::string shown_states(const testing::ScriptedSweep& sweep, const std::string& words = "") {
  const auto plan = nlohmann::json::parse(sweep.plan("--json " + words).out);
  const auto status = nlohmann::json::parse(sweep.petlab("status sweep.yaml --json " + words).out);
  sweep.folder.write("states.yaml",
                     "report: states\ntable:\n  rows: [{key: all}]\n"
                     "  columns: [{key: state, value: state}]\n");
  const auto report =
      nlohmann::json::parse(sweep.petlab("report ./states.yaml --db sweep.db --format json").out);
  return fmt::format("{} {} {}", plan.at("trials").at(0).at("state").get<std::string>(),
                     status.at("sweeps").at(0).at("states").items().begin().key(),
                     report.at("rows").at(0).at("cells").at(0).at("text").get<std::string>());
}

}  // namespace

TEST_CASE("Every command shows a trial without retries left as failed", "[orchestrator]") {
  const testing::ScriptedSweep sweep(
      "  a: {seed: 1, user: {steps: 4, behaviour: crash, attempts: 2}}\n");
  const auto attempts = [&] { return sweep.number("SELECT count(*) FROM attempts"); };
  CHECK(sweep.run("--retries 0").exit_code == 1);
  CHECK(attempts() == 1);
  CHECK(shown_states(sweep) == "failed failed failed");
  // Without --retries the next run keeps the trial's recorded limit.
  CHECK(sweep.run().exit_code == 1);
  CHECK(attempts() == 1);
  CHECK(sweep.plan().out.find("(1 of 1 attempts)") != std::string::npos);

  // --retries overrides the recorded limit, and new attempts record the new one.
  CHECK(sweep.plan("--retries 1").out.find("interrupted") != std::string::npos);
  CHECK(sweep.run("--retries 1").exit_code == 1);
  CHECK(attempts() == 2);
  CHECK(shown_states(sweep) == "failed failed failed");
  CHECK(sweep.plan().out.find("(2 of 2 attempts)") != std::string::npos);

  // The runs folder records the limit too.
  std::filesystem::remove(sweep.database());
  CHECK(sweep.petlab("db rebuild --db sweep.db --runs sweep.runs").exit_code == 0);
  CHECK(shown_states(sweep) == "failed failed failed");
  CHECK(sweep.run("--retries 2").exit_code == 0);
  CHECK(attempts() == 3);
  CHECK(shown_states(sweep) == "done done done");
}

TEST_CASE("Every command shows a trial with retries left as interrupted", "[orchestrator]") {
  const testing::ScriptedSweep sweep(
      "  a: {seed: 1, user: {steps: 400, step_ms: 5, behaviour: crash, attempts: 1}}\n");
  testing::Background running([&] { return sweep.run(); });
  CHECK(sweep.until("SELECT count(*) FROM attempts WHERE started_at > 0"));
  ::kill(std::stoi(sweep.text("SELECT owner FROM attempts LIMIT 1")), SIGTERM);
  running.wait();
  CHECK(shown_states(sweep) == "interrupted interrupted interrupted");
}

TEST_CASE("Status and plan note a missing runs folder", "[orchestrator]") {
  const testing::ScriptedSweep sweep("  a: {seed: 1}\n");
  REQUIRE(sweep.run().exit_code == 0);
  const std::string gone = "note: the runs folder is missing: ";
  for (const std::string words : {"status sweep.yaml", "plan sweep.yaml"}) {
    CHECK(sweep.petlab(words).out.find(gone) == std::string::npos);
  }
  const auto status = [&] {
    return nlohmann::json::parse(sweep.petlab("status sweep.yaml --json").out);
  };
  CHECK(status().at("runs_gone") == false);
  std::filesystem::remove_all(sweep.folder.path() / "sweep.runs");
  for (const std::string words : {"status sweep.yaml", "plan sweep.yaml"}) {
    CHECK(sweep.petlab(words).out.find(gone) != std::string::npos);
  }
  CHECK(status().at("runs_gone") == true);
}

TEST_CASE("A plan shows the fields in which the trials of a variant differ", "[orchestrator]") {
  const testing::ScriptedSweep sweep("");
  sweep.folder.write("sweep.yaml",
                     "sweep: s\nbase: {backbone: ./backbone, task: cola, module.kind: adapter}\n"
                     "variants:\n"
                     "  small: {module.bottleneck: 8, user: {width: 2}}\n"
                     "  other: {module.kind: lora, module.rank: 4, training.learning_rate: 0.5}\n"
                     "grid: {seed: [7, 8], user.note: [x, y]}\n");
  const std::string plan = sweep.plan().out;
  // The module and the learning rate are omitted because the variant sets them.
  for (const char* line :
       {"small    cola, seed 7, note x  new", "other    cola, seed 8, note y  "}) {
    CHECK(plan.find(line) != std::string::npos);
  }
}
