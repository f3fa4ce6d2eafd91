// Workers that never start a trial, and the environment that workers are started with.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "orchestrator/host/slots.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace petlab;

namespace {

using Scripted = testing::ScriptedSweep;

// Writes an executable shell script next to the sweep. "$W" in it is the scripted worker.
std::string script(const Scripted& sweep, const std::string& text) {
  const auto file = sweep.folder.path() / "worker.sh";
  sweep.folder.write("worker.sh", fmt::format("#!/bin/sh\nW={}\n{}\n",
                                              testing::program("scripted-worker").string(), text));
  ::chmod(file.c_str(), 0755);
  return file.string();
}

// Trials that take no time.
std::string many(int trials) {
  std::string variants;
  for (int seed = 1; seed <= trials; ++seed)
    variants += fmt::format("  v{0}: {{seed: {0}}}\n", seed);
  return variants;
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("A trial that kills three workers before it starts is left, even if slots are free",
          "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1, user: {behaviour: crash, phase: begin, attempts: 99}}\n");
  const auto result =
      sweep.petlab(fmt::format("run sweep.yaml --slots 2 --retry-delay 100ms --worker {}",
                               testing::program("scripted-worker").string()),
                   "timeout 20");
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("three workers in a row exited before starting it: the worker ended with "
                        "signal 6 (Aborted)\nabout to crash in begin") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'never_started'") == 3);
  // The second attempt waits for the retry delay, the third twice as long.
  CHECK(sweep.number("SELECT max(begun_at) - min(begun_at) >= 0.3 FROM attempts") == 1);
  // These attempts do not count against the trial: the next run tries it again.
  const auto plan = sweep.plan();
  CHECK(plan.out.find("never started") != std::string::npos);
}

TEST_CASE("A trial that kills its workers before it starts does not block the others",
          "[orchestrator]") {
  std::string variants = "  bad: {seed: 1, user: {behaviour: crash, phase: begin, attempts: 99}}\n";
  for (int seed = 2; seed < 30; ++seed) {
    variants += fmt::format("  v{0}: {{seed: {0}, user: {{step_ms: 10}}}}\n", seed);
  }
  const Scripted sweep(variants);
  const auto result = sweep.run("", "timeout 60");
  CHECK(result.exit_code == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 28);
  // 4 if the first three were in the same slot.
  const auto attempts = sweep.number("SELECT max(number) FROM attempts");
  CHECK(attempts >= 3);
  CHECK(attempts <= 4);
}

TEST_CASE("A runs folder whose path has a line break or tab is refused", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n");
  for (const char* name : {"$(printf 'two\\nlines')", "$(printf 'a\\ttab')"}) {
    const auto result = sweep.run(fmt::format("--runs \"{}\"", name));
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(
              "its path must not contain line breaks or tabs; choose another with --runs") !=
          std::string::npos);
  }
}

TEST_CASE("A worker keeps variables whose names only start like petlab's", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n");
  const auto worker = script(sweep, "env >env.txt\nexec \"$W\" \"$@\"");
  CHECK(sweep
            .petlab("run sweep.yaml --worker " + worker,
                    "PETLAB_WORKER_FLAVOUR=mild PETLAB_WORKER=outer")
            .exit_code == 0);
  const std::string environment = content(sweep.folder.path() / "env.txt");
  CHECK(environment.find("PETLAB_WORKER_FLAVOUR=mild\n") != std::string::npos);
  CHECK(environment.find("PETLAB_WORKER=outer\n") == std::string::npos);
}

TEST_CASE("A run raises its soft limit of open files, and its workers get the original one",
          "[orchestrator]") {
  const Scripted sweep(many(50));
  const auto worker = script(sweep, "ulimit -S -n >>limits.txt\nexec \"$W\" \"$@\"");
  const auto result =
      sweep.petlab(fmt::format("run sweep.yaml --slots 40 --retry-delay 10ms --worker {}", worker),
                   "ulimit -S -n 96;");
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("ulimit") == std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 50);
  std::istringstream limits(content(sweep.folder.path() / "limits.txt"));
  int workers = 0;
  for (int limit = 0; limits >> limit; ++workers) CHECK(limit == 96);
  CHECK(workers > 1);
}

TEST_CASE("A run with a low limit of open files has fewer workers, and reports it",
          "[orchestrator]") {
  const Scripted sweep(many(50));
  const auto result = sweep.run("--slots 40", "ulimit -n 128;");
  CHECK(result.exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 50);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 50);
  INFO(result.err);
  int fits = 0;
  int needed = 0;
  const std::size_t at = result.err.find("running at most ");
  REQUIRE(at != std::string::npos);
  CHECK(std::sscanf(result.err.c_str() + at,
                    "running at most %d workers, not 40: the limit of open files is 128; raise it "
                    "with `ulimit -n` to at least %d\n",
                    &fits, &needed) == 2);
  CHECK(result.err.find("ulimit", result.err.find("ulimit") + 1) == std::string::npos);
  CHECK(fits >= 4);
  CHECK(fits <= 9);
  // With the limit that it names, it runs all workers.
  CHECK(sweep.run("--rerun all --slots 40", fmt::format("ulimit -n {};", needed))
            .err.find("ulimit") == std::string::npos);
  const auto none = sweep.run("--rerun all", "ulimit -n 48;");
  CHECK(none.exit_code == 1);
  CHECK(none.err.find("petlab: the limit of open files is 48, too low for one worker; raise it "
                      "with `ulimit -n` to at least ") != std::string::npos);
}

TEST_CASE("A description with a field of the wrong type is refused and the field named",
          "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n");
  const auto refused = [&](const std::string& description) {
    const auto worker = script(sweep, fmt::format("echo '{}'", description));
    const auto result = sweep.petlab("run sweep.yaml --worker " + worker);
    CHECK(result.exit_code == 1);
    const std::size_t at = result.err.find("worker.sh --describe: ");
    return at == std::string::npos ? result.err : result.err.substr(at);
  };
  CHECK(
      refused(R"({"numerics": 3})") ==
      "worker.sh --describe: numerics is 3, must be a text (docs/reference/worker-protocol.md)\n");
  CHECK(
      refused(R"({"name": ["w"]})") ==
      "worker.sh --describe: name is a list, must be a text (docs/reference/worker-protocol.md)\n");
  CHECK(refused(R"({"protocol": "1"})") ==
        "worker.sh --describe: protocol is '1', must be a whole number "
        "(docs/reference/worker-protocol.md)\n");
  CHECK(refused(R"({"devices": "cpu"})") ==
        "worker.sh --describe: devices is 'cpu', must be a list of texts "
        "(docs/reference/worker-protocol.md)\n");
  CHECK(refused(R"({"max_gpus": 0})") ==
        "worker.sh --describe: max_gpus is 0, must be a whole number from 1 "
        "(docs/reference/worker-protocol.md)\n");
}

TEST_CASE("A trial with more GPUs than its worker can use is refused", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1, resources.gpus: 2}\n");
  const auto worker = script(sweep, R"(echo '{"name": "one", "max_gpus": 1}')");
  const auto result = sweep.petlab("run sweep.yaml --worker " + worker);
  CHECK(result.exit_code == 2);
  CHECK(result.err.ends_with(" is 2, but one trains a trial on at most 1 GPU(s)\n"));
}

TEST_CASE("Two runs of one slot each train at the same time on two cores", "[orchestrator]") {
  if (orchestrator::usable_cores().numbers.size() < 2) return testing::skip("one core");
  const testing::TempDir gates;
  const auto gate = (gates.path() / "gate").string();
  const Scripted sweep(
      fmt::format("  a: {{seed: 1, user: {{gate: {0}}}}}\n"
                  "  b: {{seed: 2, user: {{gate: {0}}}}}\n",
                  gate));
  testing::Background first([&] { return sweep.run("--slots 1"); });
  testing::Background second([&] { return sweep.run("--slots 1"); });
  const bool both = sweep.until("SELECT count(*) = 2 FROM attempts WHERE started_at > 0");
  gates.write("gate", "");
  CHECK(both);
  CHECK(first.wait().exit_code == 0);
  CHECK(second.wait().exit_code == 0);
}

TEST_CASE("A note explains that a worker never reported the end of its trial", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1, user: {behaviour: leave, phase: end}}\n");
  const auto result = sweep.run("", "timeout --signal=TERM --preserve-status 40");
  CHECK(result.err.find(": its worker has reported nothing for 3") != std::string::npos);
  CHECK(result.err.find(
            " s since its last step; a trial ends when its worker writes finished or failed "
            "(docs/reference/worker-protocol.md); --no-progress-limit kills a silent worker\n") !=
        std::string::npos);
}

TEST_CASE("Finished trials whose files are missing are reported", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n  b: {seed: 2}\n");
  CHECK(sweep.run().err.find("are gone from") == std::string::npos);
  for (const auto& trial :
       std::filesystem::directory_iterator(sweep.folder.path() / "sweep.runs")) {
    std::filesystem::remove_all(trial.path());
  }
  CHECK(sweep.plan().out.find("finished in attempt 1; its files are missing\n") !=
        std::string::npos);
  const auto result = sweep.run();
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("the files of 2 finished trial(s) are missing from ") != std::string::npos);
}
