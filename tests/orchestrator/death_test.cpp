// Which signals workers get when their orchestrator dies.
#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/host/slots.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

namespace {

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

std::vector<pid_t> guardians_of(pid_t orchestrator) {
  std::vector<pid_t> guardians;
  // The kernel's list may omit a child while another one exits.
  for (int tries = 0; tries < 500 && guardians.empty(); ++tries) {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", orchestrator));
    for (pid_t child = 0; children >> child;) {
      std::string name;
      std::getline(std::ifstream(fmt::format("/proc/{}/comm", child)) >> std::ws, name);
      if (name == "petlab-guardian") guardians.push_back(child);
    }
    if (guardians.empty()) pause();
  }
  return guardians;
}

// A run of one trial, with the pids of its processes. The trial takes about eight seconds, longer
// than the next run needs to begin on a busy machine. It counts its SIGTERMs in a file and takes
// half a second for its checkpoint when it is asked to stop.
class Dying {
 public:
  Dying()
      : stops_(folder_.path() / "stops"),
        sweep(
            fmt::format("  a: {{seed: 1, user: {{steps: 400, step_ms: 20, checkpoint_every: 1000, "
                        "stop_ms: 500, stops: {}}}}}\n",
                        stops_.string())),
        run_([this] { return run_sweep(); }) {
    REQUIRE(sweep.until("SELECT count(*) FROM metrics"));
    const std::string owner = sweep.text("SELECT owner FROM attempts");
    orchestrator = std::stoi(owner);
    guardians = guardians_of(orchestrator);
    REQUIRE(guardians.size() == 1);
  }

  testing::CommandResult run_sweep() const {
    return sweep.petlab(fmt::format("run sweep.yaml --slots 1 --grace 5s --worker {}",
                                    testing::program("scripted-worker").string()));
  }
  std::string stops() const {
    std::ifstream in(stops_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool until_stopped() const {
    for (int tries = 0; tries < 500 && stops().empty(); ++tries) pause();
    return !stops().empty();
  }
  void wait() { run_.wait(); }
  bool resumed_from_a_checkpoint() const {
    return sweep.number("SELECT count(*) FROM attempts WHERE resume_step > 0") == 1;
  }

 private:
  testing::TempDir folder_;
  std::filesystem::path stops_;

 public:
  testing::ScriptedSweep sweep;
  pid_t orchestrator = 0;
  std::vector<pid_t> guardians;

 private:
  testing::Background run_;
};

}  // namespace

TEST_CASE("A worker whose orchestrator was killed is asked to stop once",
          "[orchestrator][kernel]") {
  Dying dying;
  ::kill(dying.orchestrator, SIGKILL);
  dying.wait();
  // The next run starts its recovery while the worker still writes its checkpoint.
  CHECK(dying.run_sweep().exit_code == 0);
  CHECK(dying.stops() == "T");
  CHECK(dying.resumed_from_a_checkpoint());
}

TEST_CASE("A worker whose orchestrator and guardian were killed is asked to stop by the next run",
          "[orchestrator][kernel]") {
  Dying dying;
  ::kill(dying.orchestrator, SIGSTOP);
  for (const pid_t guardian : dying.guardians) ::kill(guardian, SIGKILL);
  ::kill(dying.orchestrator, SIGKILL);
  dying.wait();
  CHECK(dying.stops().empty());
  CHECK(dying.run_sweep().exit_code == 0);
  CHECK(dying.stops() == "T");
  CHECK(dying.resumed_from_a_checkpoint());
}

TEST_CASE("A suspended worker is continued so that it can stop after its orchestrator was killed",
          "[orchestrator]") {
  Dying dying;
  const auto worker = static_cast<pid_t>(dying.sweep.number("SELECT pid FROM attempts"));
  ::kill(dying.orchestrator, SIGSTOP);
  for (const pid_t guardian : dying.guardians) ::kill(guardian, SIGKILL);
  ::kill(dying.orchestrator, SIGKILL);
  dying.wait();
  // Suspend it only now: the kernel sends SIGHUP to a suspended process group whose parent dies.
  ::kill(-worker, SIGSTOP);
  CHECK(dying.stops().empty());
  CHECK(dying.run_sweep().exit_code == 0);
  CHECK(dying.stops() == "T");
  CHECK(dying.resumed_from_a_checkpoint());
}

TEST_CASE("A worker that was asked to stop is not asked again when its orchestrator is killed",
          "[orchestrator][kernel]") {
  Dying dying;
  ::kill(dying.orchestrator, SIGTERM);
  REQUIRE(dying.until_stopped());
  ::kill(dying.orchestrator, SIGKILL);
  dying.wait();
  CHECK(dying.run_sweep().exit_code == 0);
  CHECK(dying.stops() == "T");
  CHECK(dying.resumed_from_a_checkpoint());
}

TEST_CASE("A run trains and handles signals while the worker of a dead run keeps running",
          "[orchestrator][kernel]") {
  const testing::ScriptedSweep sweep(
      "  a: {seed: 1, priority: 1, user: {behaviour: ignore_sigterm}}\n  b: {seed: 2}\n");
  const auto run = [&](const std::string& words, const std::string& prefix) {
    return sweep.petlab(fmt::format("run sweep.yaml --grace 30s --worker {} {}",
                                    testing::program("scripted-worker").string(), words),
                        prefix);
  };
  testing::Background first([&] { return run("--slots 1", ""); });
  REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE started_at > 0"));
  const auto worker = static_cast<pid_t>(sweep.number("SELECT pid FROM attempts"));
  // It ignores SIGTERM from its second step on.
  REQUIRE(sweep.until("SELECT count(*) >= 2 FROM metrics"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(std::stoi(sweep.text("SELECT owner FROM attempts")), SIGKILL);
  first.wait();
  const auto before = std::chrono::steady_clock::now();
  const auto result = run("--slots 2", "timeout --signal=TERM --preserve-status 12");
  const auto took = std::chrono::steady_clock::now() - before;
  CHECK(::kill(worker, 0) == 0);
  ::kill(-worker, SIGKILL);
  CHECK(result.exit_code == 3);
  CHECK(took < std::chrono::seconds(28));
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 1);
  // The next run recovers the rest.
  CHECK(run("--slots 2", "timeout 60").exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 2);
}

TEST_CASE("A run that waits for a slot ends the hanging worker of a dead run that holds it",
          "[orchestrator]") {
  const testing::ScriptedSweep sweep("  a: {seed: 1, user: {behaviour: hang}}\n");
  const auto run = [&](const char* file) {
    // With one core there is one slot.
    return sweep.petlab(
        fmt::format("run {} --grace 300ms --worker {}", file,
                    testing::program("scripted-worker").string()),
        fmt::format("taskset -c {} timeout 30", orchestrator::usable_cores().numbers.front()));
  };
  std::string other = testing::ScriptedSweep::sweep_text("  b: {seed: 2}\n");
  sweep.folder.write("other.yaml", other.replace(other.find("scripted"), 8, "other"));
  testing::Background first([&] { return run("sweep.yaml"); });
  REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE started_at > 0"));
  testing::Background second([&] { return run("other.yaml"); });
  REQUIRE(sweep.until("SELECT count(*) = 2 FROM sweeps"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const pid_t orchestrator = std::stoi(sweep.text("SELECT owner FROM attempts"));
  ::kill(orchestrator, SIGSTOP);
  for (const pid_t guardian : guardians_of(orchestrator)) ::kill(guardian, SIGKILL);
  ::kill(orchestrator, SIGKILL);
  CHECK(second.wait().exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 1);
}
