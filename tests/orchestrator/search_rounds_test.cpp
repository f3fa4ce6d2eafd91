#include "orchestrator/running/search_rounds.h"

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "tests/orchestrator/scripted_run.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::ScriptedRun;

namespace {

TEST_CASE("An interpreter that hangs is killed at its limit, and the search can continue",
          "[orchestrator]") {
  ScriptedRun run(1);
  const std::filesystem::path python =
      run.files.folder.write("home/venv/bin/python3", "#!/bin/sh\nexec sleep 600\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  run.files.folder.write(
      "sweep.yaml", testing::ScriptedSweep::sweep_text("  v: {}\n") +
                        "search: {training.learning_rate: 'log(1e-5, 1e-2)', trials: 20, by: tpe}");
  sweeps::Sweep sweep = sweeps::load_sweep(run.sweep.file, run.locations);
  const sweeps::Study before = *sweep.study;
  boost::asio::io_context io;
  orchestrator::EventLoop loop(io);
  orchestrator::SearchRounds rounds(loop, *run.store, sweep, run.locations, run.options.runs, run);
  rounds.limit = std::chrono::milliseconds(200);
  const std::string problem = "search by tpe: Optuna in " + python.string() +
                              " did not finish within 200 ms; run the same command to continue";
  // When it looks for Optuna, and when it asks for points.
  for (const std::int64_t total : {0, 10}) {
    orchestrator::RunResult result;
    result.status.total = result.status.done = total;
    CHECK_FALSE(rounds.next(result));
    CHECK(result.problem == problem);
    CHECK(result.points_missing);
    CHECK(exit_code(result) == 1);
  }
  CHECK(sweep.study->points == before.points);
}

TEST_CASE("A sweep without a search by TPE has one round", "[orchestrator]") {
  ScriptedRun run(1);
  boost::asio::io_context io;
  orchestrator::EventLoop loop(io);
  orchestrator::SearchRounds rounds(loop, *run.store, run.sweep, run.locations, run.options.runs,
                                    run);
  orchestrator::RunResult result;
  CHECK(rounds.next(result));
  CHECK_FALSE(rounds.next(result));
  CHECK_FALSE(result.points_missing);
}

}  // namespace
