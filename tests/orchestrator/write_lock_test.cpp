#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

TEST_CASE("No file of the runs folder is touched while others wait for the database",
          "[orchestrator]") {
  // Thousands of events, endings of each kind, retries that resume from checkpoints, claims given
  // back. One trial crashes until its retries are used up, so it does not matter which of its
  // attempts the first run leaves to the second. The slow trial keeps the first run from ending by
  // itself.
  const testing::ScriptedSweep sweep(
      "  long: {seed: 1, user: {steps: 3000, step_ms: 0, checkpoint_every: 1000}}\n"
      "  crash: {seed: 2, user: {steps: 20, checkpoint_every: 5, behaviour: crash, attempts: 9}}\n"
      "  kill: {seed: 3, user: {steps: 20, checkpoint_every: 5, behaviour: kill}}\n"
      "  begin: {seed: 4, user: {behaviour: exit, phase: begin}}\n"
      "  error: {seed: 5, user: {behaviour: error}}\n"
      "  lie: {seed: 6, user: {behaviour: lie}}\n"
      "  a: {seed: 7}\n  b: {seed: 8}\n"
      "  slow: {seed: 9, user: {steps: 75, step_ms: 20, checkpoint_every: 5}}\n");
  const auto touched = sweep.folder.path() / "touched";
  const std::string shim = fmt::format(
      "LD_PRELOAD={} ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='locked "
      "program=petlab path=*/sweep.runs/* file={}'",
      testing::program("petlab-faults.so").string(), touched.string());
  {
    testing::Background first([&] { return sweep.run("--retries 3", shim); });
    REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE outcome = 'crashed'"));
    CHECK(sweep.petlab("stop --db sweep.db --now").exit_code == 0);
    CHECK(first.wait().exit_code == 3);
  }
  CHECK(sweep.run("--retries 3", shim).exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed'") > 2);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE parent IS NOT NULL") > 0);
  // One line per run: each held the lock and touched nothing.
  CHECK(testing::read_file(touched) == "lock \nlock \n");
}

TEST_CASE("An import touches no file of the runs folder while others wait for the database",
          "[orchestrator]") {
  const testing::ScriptedSweep sweep(
      "  long: {seed: 1, user: {steps: 3000, step_ms: 0, checkpoint_every: 1000}}\n"
      "  crash: {seed: 2, user: {steps: 20, checkpoint_every: 5, behaviour: crash, attempts: 2}}\n"
      "  error: {seed: 3, user: {behaviour: error}}\n"
      "  a: {seed: 4}\n  b: {seed: 5}\n");
  CHECK(sweep.run("--retries 3").exit_code == 1);
  CHECK(sweep
            .petlab("cancel --db sweep.db " +
                    sweep.text("SELECT trial_id FROM trials WHERE result_attempt IS NULL"))
            .exit_code == 0);
  const auto touched = sweep.folder.path() / "touched";
  const std::string shim = fmt::format(
      "LD_PRELOAD={} ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='locked "
      "program=petlab path=*/sweep.runs/* file={}'",
      testing::program("petlab-faults.so").string(), touched.string());
  const auto rows = [&] { return sweep.number("SELECT count(*) FROM metrics"); };
  const std::int64_t known = rows();
  std::filesystem::remove(sweep.database());
  // First into a database that others may already use, then again with nothing new.
  for (int time = 0; time < 2; ++time) {
    CHECK(sweep.petlab("db import --db sweep.db --runs sweep.runs", shim).exit_code == 0);
    CHECK(rows() == known);
  }
  CHECK(sweep.number("SELECT count(*) FROM trials WHERE cancelled") == 1);
  CHECK(testing::read_file(touched) == "lock \nlock \n");
}
