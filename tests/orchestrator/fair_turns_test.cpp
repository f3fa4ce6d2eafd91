#include "orchestrator/planning/fair_turns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "orchestrator/host/slots.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

// A run on cores 0 and 1 that has trials for `work` slots and holds `holds` of them.
RunNeeds run_with(std::int64_t holds, std::int64_t work, std::int64_t priority = 0) {
  RunNeeds run;
  run.places = {"cpu-0", "cpu-1"};
  run.holds = holds;
  run.wants = work - holds;
  run.priority = priority;
  return run;
}

RunNeeds nice(RunNeeds run) {
  run.nice = true;
  return run;
}

std::vector<RunNeeds> all_but(const std::vector<RunNeeds>& runs, const RunNeeds& mine) {
  std::vector<RunNeeds> others;
  for (const RunNeeds& run : runs) {
    if (&run != &mine) others.push_back(run);
  }
  return others;
}

// Lets trials end one after the other, each in a slot of another run. A slot that its run yields
// goes to the run that no other precedes. Returns true if any was yielded.
bool trials_end(std::vector<RunNeeds>& runs, bool had_turn) {
  bool any = false;
  for (RunNeeds& mine : runs) {
    if (mine.holds == 0 || !should_get({"cpu-0"}, mine, all_but(runs, mine), had_turn)) continue;
    any = true;
    --mine.holds, ++mine.wants;
    const auto taker = std::find_if(runs.begin(), runs.end(), [&](const RunNeeds& run) {
      return run.wants > 0 && goes_first(run, all_but(runs, run)) == nullptr;
    });
    REQUIRE(taker != runs.end());
    REQUIRE(&*taker != &mine);
    ++taker->holds, --taker->wants;
  }
  return any;
}

// The slots that each run holds once none is yielded any more.
std::string slots_of(std::vector<RunNeeds> runs) {
  for (int rounds = 0; trials_end(runs, false); ++rounds) REQUIRE(rounds < 100);
  std::vector<std::int64_t> holds;
  for (const RunNeeds& run : runs) holds.push_back(run.holds);
  return fmt::format("{}", fmt::join(holds, " "));
}

}  // namespace

TEST_CASE("Slots go to the runs that hold the fewest for their weight", "[orchestrator]") {
  CHECK(slots_of({run_with(4, 9), run_with(0, 9)}) == "2 2");
  CHECK(slots_of({run_with(4, 9), run_with(0, 1)}) == "3 1");
  CHECK(slots_of({run_with(5, 9), run_with(0, 9), run_with(0, 9)}) == "2 2 1");
  CHECK(slots_of({run_with(2, 9), run_with(0, 9), run_with(0, 9)}) == "1 1 0");
  CHECK(slots_of({run_with(6, 9), run_with(0, 9, 1)}) == "2 4");
  CHECK(slots_of({run_with(0, 9), run_with(9, 9, -1)}) == "6 3");
  CHECK(slots_of({nice(run_with(4, 9)), run_with(0, 2)}) == "2 2");
  CHECK(slots_of({nice(run_with(4, 9)), run_with(0, 9)}) == "0 4");
  CHECK(slots_of({run_with(4, 9), nice(run_with(0, 9))}) == "4 0");
  CHECK(slots_of({nice(run_with(4, 9)), nice(run_with(0, 9))}) == "2 2");
}

TEST_CASE("Runs on other cores, and runs whose slots need more cores, take no slot",
          "[orchestrator]") {
  RunNeeds elsewhere = run_with(0, 9);
  elsewhere.places = {"cpu-2", "cpu-3"};
  CHECK(slots_of({run_with(4, 9), elsewhere}) == "4 0");
  RunNeeds wide = run_with(0, 9);
  wide.places_of_slot = 2;
  CHECK(slots_of({run_with(4, 9), wide}) == "4 0");
  // It does not wait for the core of my slot.
  elsewhere.places = {"cpu-1", "cpu-2"};
  CHECK(should_get({"cpu-0"}, run_with(4, 9), {elsewhere}, false) == nullptr);
  CHECK(should_get({"cpu-1"}, run_with(4, 9), {elsewhere}, false) != nullptr);
  // Of a slot with two GPUs, one is enough for the other run; but both are given up.
  CHECK(should_get({"cpu-0", "cpu-1"}, run_with(4, 9), {elsewhere}, false) != nullptr);
}

TEST_CASE("Runs of equal claim take turns by the time that they have had", "[orchestrator]") {
  for (const auto& [priority, share] : {std::pair(0, 500), std::pair(1, 667), std::pair(-2, 200)}) {
    std::vector<RunNeeds> runs{run_with(0, 9, priority), run_with(1, 9)};
    int first_held = 0;
    for (int turn = 0; turn < 1000; ++turn) {
      for (RunNeeds& run : runs) run.served += static_cast<double>(run.holds) / weight_of(run);
      first_held += static_cast<int>(runs[0].holds);
      trials_end(runs, true);
    }
    CHECK(std::abs(first_held - share) <= 3);
  }
}

TEST_CASE("A run that starts later gets its share of the slots when trials end", "[orchestrator]") {
  if (usable_cores().numbers.size() < 2) return testing::skip("one core");
  std::string many;
  for (int trial = 1; trial <= 24; ++trial) {
    many += fmt::format("  v{}: {{seed: {}, user: {{steps: 1, step_ms: 250}}}}\n", trial, trial);
  }
  for (const std::string nice : {"", "--nice"}) {
    const testing::ScriptedSweep first(many);
    const testing::ScriptedSweep second(
        "  a: {seed: 1, user: {steps: 1, step_ms: 100}}\n"
        "  b: {seed: 2, user: {steps: 1, step_ms: 100}}\n");
    const std::string slots = "PETLAB_SLOTS=" + (first.folder.path() / "slots").string();
    testing::Background long_run([&] { return first.run(nice); });
    REQUIRE(first.until("SELECT count(*) = 2 FROM attempts WHERE started_at > 0"));
    CHECK(second.run("", slots).exit_code == 0);
    // A trial is over within a second, and its slot goes to the later run.
    CHECK(first.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") < 20);
    const testing::CommandResult& done = long_run.wait();
    CAPTURE(done.err);
    CHECK(done.exit_code == 0);
    CHECK(first.number("SELECT count(*) FROM attempts") == 24);
    // The runs have removed their own files.
    for (const auto& entry : std::filesystem::directory_iterator(first.folder.path() / "slots")) {
      CHECK(entry.path().extension() == ".lock");
    }
  }
}

TEST_CASE("A run that was killed while it waited keeps no slot from others", "[orchestrator]") {
  const testing::ScriptedSweep first("  a: {seed: 1}\n  b: {seed: 2}\n");
  const testing::ScriptedSweep second("  a: {seed: 1}\n  b: {seed: 2}\n");
  const std::filesystem::path folder = first.folder.path() / "slots";
  const UsableCores cores = usable_cores();
  const CpuSlots all(folder, cores, std::ssize(cores.numbers), 1);
  std::vector<Slot> held;
  while (std::optional<Slot> slot = all.acquire()) held.push_back(std::move(*slot));
  CHECK(first.run("", "timeout -s KILL 2").exit_code == 137);
  const auto announced = [&] {
    const std::filesystem::directory_iterator files(folder);
    return std::count_if(begin(files), end(files),
                         [](const auto& file) { return file.path().extension() == ".run"; });
  };
  CHECK(announced() == 1);
  held.clear();
  CHECK(second.run("", "PETLAB_SLOTS=" + folder.string()).exit_code == 0);
  CHECK(announced() == 0);
}
