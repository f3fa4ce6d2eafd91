#include "protocol/attempt_log.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/records/sweep_record.h"
#include "results/query.h"
#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

using results::Outcome;

// A runs folder with attempts, without a database.
struct Runs {
  testing::TempDir folder;
  std::filesystem::path runs = folder.path() / "runs";

  static sweeps::TrialConfig config() {
    sweeps::TrialConfig trial = sweeps::default_config("adapter");
    trial.backbone = "minilm";
    trial.tasks = {"cola"};
    return trial;
  }
  protocol::TrialDirectory attempt(const std::string& trial, std::int64_t number = 1) const {
    protocol::TrialFile file;
    file.trial_id = trial;
    file.attempt = number;
    file.config = config();
    results::NewAttempt begun;
    begun.trial_id = trial;
    begun.sweep = "one";
    begun.owner = "o";
    const protocol::TrialDirectory directory(runs, trial, number);
    make_attempt_directory(directory, file, begun);
    return directory;
  }
  static void append(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::app | std::ios::binary) << text;
  }
};

results::Ending crash() {
  results::Ending ending;
  ending.outcome = Outcome::crashed;
  ending.reason = "the worker ended with exit code 1";
  return ending;
}

}  // namespace

TEST_CASE("A record after a torn line of attempt.jsonl starts a new line", "[orchestrator]") {
  const Runs f;
  const protocol::TrialDirectory directory = f.attempt("t1");
  f.append(directory.attempt_log(), R"({"v":1,"type":"launched","pi)");
  protocol::log_ending(directory, crash());
  protocol::log_launch(directory, {11, 22, "", "", "", "cpu-0", "", 5});
  const protocol::AttemptLog log = protocol::read_attempt_log(directory);
  REQUIRE(log.begun);
  CHECK(log.begun->owner == "o");
  REQUIRE(log.ending);
  CHECK(log.ending->outcome == Outcome::crashed);
  REQUIRE(log.launch);
  CHECK(log.launch->pid == 11);
  CHECK(log.left_out.empty());  // a torn line is not reported
  f.append(directory.attempt_log(), "rubbish\n");
  CHECK(protocol::read_attempt_log(directory).left_out ==
        std::vector<std::string>{directory.attempt_log().string() + ":5: it is not a JSON object"});
}

TEST_CASE("In an attempt log the first begin, last launch and first end count", "[orchestrator]") {
  const Runs f;
  const protocol::TrialDirectory directory = f.attempt("t1");
  protocol::log_launch(directory, {11, 22, "first", "", "", "cpu-0", "1", 5});
  protocol::log_ending(directory, crash());
  // Another orchestrator logs a second ending, and a third one begins the attempt again.
  results::Ending stopped = crash();
  stopped.outcome = Outcome::stopped;
  stopped.reason = "its orchestrator died";
  stopped.exit_code = 7;
  stopped.time = 99;
  protocol::log_ending(directory, stopped);
  f.append(directory.attempt_log(), "{\"v\":1,\"type\":\"begun\",\"owner\":\"another\"}\n");
  protocol::log_launch(directory, {33, 44, "second", "", "", "cpu-1", "2", 6});
  const protocol::AttemptLog log = protocol::read_attempt_log(directory);
  CHECK(log.left_out.empty());
  REQUIRE(log.begun);
  CHECK(log.begun->owner == "o");
  REQUIRE(log.launch);
  CHECK(log.launch->pid == 33);
  CHECK(log.launch->host == "second");
  CHECK(log.launch->device == "cpu-1");
  CHECK(log.launch->job == "2");
  REQUIRE(log.ending);
  CHECK(log.ending->outcome == Outcome::crashed);
  CHECK(log.ending->reason == "the worker ended with exit code 1");
  CHECK_FALSE(log.ending->exit_code);
  CHECK(log.ending->time == 0);
}

TEST_CASE("A job's later launch keeps the code of its first", "[orchestrator]") {
  const Runs f;
  const protocol::TrialDirectory directory = f.attempt("t1");
  protocol::log_launch(directory, {0, 0, "", "", "", "", "7", 5, R"({"code":"sha256:r"})"});
  protocol::log_launch(directory, {11, 22, "node", "", "", "", "7", 6});
  const protocol::AttemptLog log = protocol::read_attempt_log(directory);
  REQUIRE(log.launch);
  CHECK(log.launch->host == "node");
  CHECK(log.launch->code == R"({"code":"sha256:r"})");
}

TEST_CASE("A rebuild reads more attempts than fit into one transaction", "[orchestrator]") {
  const Runs f;
  // Two transactions and one more attempt; the last trial has two.
  for (int trial = 0; trial < 2 * 256; ++trial) f.attempt(fmt::format("t{:03}", trial));
  f.attempt("t511", 2);
  const auto database = f.folder.path() / "petlab.db";
  const RunsSummary summary = rebuild(f.runs, database);
  CHECK(summary.left_out.empty());
  const auto rows = results::query(database,
                                   "SELECT count(*), count(DISTINCT trial), max(number), "
                                   "(SELECT count(*) FROM trials) FROM attempts")
                        .rows.at(0);
  CHECK(rows == std::vector<results::Value>{std::int64_t{513}, std::int64_t{512}, std::int64_t{2},
                                            std::int64_t{512}});
}

TEST_CASE("Decisions before and after a torn line all count", "[orchestrator]") {
  const Runs f;
  const auto database = f.folder.path() / "petlab.db";
  results::Store store(database);
  results::Batch batch = store.begin();
  batch.record_trial({"t1", sweeps::to_json(Runs::config()).dump(), "", {}, {}});
  batch.commit();
  decide(store, f.runs, "t1", {protocol::Decision::What::cancel, 0, 1});
  f.append(protocol::decisions_file(f.runs, "t1"), R"({"v":1,"time":2.0,"deci)");
  decide(store, f.runs, "t1", {protocol::Decision::What::retry, 3, 3});
  CHECK(protocol::read_decisions(f.runs, "t1") ==
        std::vector<protocol::Decision>{{protocol::Decision::What::cancel, 0, 1},
                                        {protocol::Decision::What::retry, 3, 3}});
}

TEST_CASE("A later retry decision never reverts an earlier one", "[orchestrator]") {
  const Runs f;
  results::Store store(f.folder.path() / "petlab.db");
  results::Batch batch = store.begin();
  batch.record_trial({"t1", sweeps::to_json(Runs::config()).dump(), "", {}, {}});
  batch.commit();
  const auto retried_after = [](const results::Store& of) {
    return of.read().trial_facts(std::vector<std::string>{"t1"}).front().retried_after;
  };
  // Two processes that decide at the same time may have read the attempts in the opposite order.
  decide(store, f.runs, "t1", {protocol::Decision::What::retry, 5, 1});
  CHECK(retried_after(store) == 5);
  decide(store, f.runs, "t1", {protocol::Decision::What::retry, 3, 2});
  CHECK(retried_after(store) == 5);
  decide(store, f.runs, "t1", {protocol::Decision::What::cancel, 0, 3});
  CHECK(retried_after(store) == 5);
}

TEST_CASE(
    "Damaged lines of attempt.jsonl are reported, and the rest of the runs folder is imported",
    "[orchestrator]") {
  const Runs f;
  const protocol::TrialDirectory damaged = f.attempt("t1");
  f.append(damaged.attempt_log(), R"({"v":1,"type":"ended","outcome":"finished"})"
                                  "\n"
                                  R"({"v":1,"type":"ended","outcome":"open"})"
                                  "\n"
                                  R"({"v":1,"type":"launched","pid":"eleven"})"
                                  "\n");
  protocol::log_ending(damaged, crash());
  protocol::log_ending(f.attempt("t2"), crash());
  const auto database = f.folder.path() / "again.db";
  const RunsSummary summary = rebuild(f.runs, database);
  REQUIRE(summary.left_out.size() == 3);
  const std::string file = damaged.attempt_log().string();
  CHECK(summary.left_out[0] == file + ":2: outcome is 'finished', which no orchestrator writes");
  CHECK(summary.left_out[1] == file + ":3: outcome is 'open', which no orchestrator writes");
  CHECK(summary.left_out[2].starts_with(file + ":4: "));
  const auto rows =
      results::query(database, "SELECT count(*) FROM attempts WHERE outcome = 'crashed'").rows;
  CHECK(std::get<std::int64_t>(rows[0][0]) == 2);
}

TEST_CASE("A sweep file with an unknown member is reported and left out", "[orchestrator]") {
  const Runs f;
  protocol::log_ending(f.attempt("t1"), crash());
  const auto write = [&](const std::string& name, const std::string& member) {
    results::Store store(f.folder.path() / (name + ".db"));
    results::SweepRow sweep{name, "", name + ".yaml", "sha256:s", {}};
    sweep.members.push_back({"t1", "v"});
    record_sweep(store, f.runs, sweep, {{"t1", sweeps::to_json(Runs::config()).dump(), "", {}, {}}},
                 1);
    f.append(protocol::sweep_file(f.runs, name), member);
  };
  write("bad", "{\"member\":\"t9\",\"variant\":\"v\"}\n");
  write("good", "");
  const auto database = f.folder.path() / "again.db";
  const RunsSummary summary = rebuild(f.runs, database);
  CHECK(summary.left_out ==
        std::vector<std::string>{protocol::sweep_file(f.runs, "bad").string() +
                                 ":4: its member t9 is not a trial of the file"});
  CHECK(summary.sweeps == 1);
  CHECK(summary.attempts == 1);
}

}  // namespace petlab::orchestrator
