#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

TEST_CASE("No file of the runs folder is touched while others wait for the database",
          "[orchestrator]") {
  // Events by the thousand, ends of each kind, retries that go on from checkpoints, claims given
  // back.
  const testing::ScriptedSweep sweep(
      "  long: {seed: 1, user: {steps: 3000, step_ms: 0, checkpoint_every: 1000}}\n"
      "  crash: {seed: 2, user: {steps: 20, checkpoint_every: 5, behaviour: crash, attempts: 2}}\n"
      "  kill: {seed: 3, user: {steps: 20, checkpoint_every: 5, behaviour: kill}}\n"
      "  begin: {seed: 4, user: {behaviour: exit, phase: begin}}\n"
      "  error: {seed: 5, user: {behaviour: error}}\n"
      "  lie: {seed: 6, user: {behaviour: lie}}\n"
      "  a: {seed: 7}\n  b: {seed: 8}\n  c: {seed: 9}\n");
  const auto touched = sweep.folder.path() / "touched";
  const std::string shim = fmt::format(
      "LD_PRELOAD={} ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='locked "
      "program=petlab path=*/sweep.runs/* file={}'",
      testing::program("petlab-faults.so").string(), touched.string());
  sweep.run("--retries 3", shim + " timeout --signal=INT --preserve-status 0.4");
  CHECK(sweep.run("--retries 3", shim).exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'crashed'") > 2);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE parent IS NOT NULL") > 0);
  // A line for each of the two runs: each held the lock, and touched nothing.
  CHECK(testing::read_file(touched) == "lock \nlock \n");
}
