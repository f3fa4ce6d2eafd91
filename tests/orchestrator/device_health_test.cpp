#include "orchestrator/planning/device_health.h"

#include "tests/support/catch.h"

using namespace petlab::orchestrator;

namespace {

// "A1": trial 1 fails on device A; "a": a trial finishes there.
std::string disabled_after(const std::vector<std::string>& events) {
  DeviceHealth health;
  std::string changes;
  for (const std::string& event : events) {
    const std::string device(1, static_cast<char>(std::toupper(event[0])));
    if (event.size() == 1) {
      health.finished(device);
    } else {
      health.failed(device, {static_cast<std::size_t>(std::stoi(event.substr(1))), 1});
    }
    for (const DeviceHealth::Change& change : health.take_changes()) {
      changes += (change.disabled ? "-" : "+") + change.device;
    }
  }
  return changes;
}

}  // namespace

TEST_CASE("A device is disabled when three trials in a row fail there and others finish elsewhere",
          "[orchestrator]") {
  struct Row {
    std::vector<std::string> events;
    std::string changes;
  };
  for (const Row& row : {
           Row{{"A1", "A2", "A3"}, ""},                     // nothing finished anywhere
           Row{{"A1", "A2", "A3", "b"}, "-A"},              // the proof comes later
           Row{{"b", "A1", "A2"}, ""},                      // two are too few
           Row{{"b", "A1", "A2", "A3"}, "-A"},              //
           Row{{"b", "A1", "A1", "A1"}, ""},                // one trial, three times
           Row{{"b", "A1", "A2", "a", "A3"}, ""},           // not in a row
           Row{{"b", "B9", "A1", "A2", "A3"}, ""},          // the other fails as well
           Row{{"b", "B9", "A1", "A2", "A3", "b"}, "-A"},   //
           Row{{"A1", "B4", "A2", "B5", "A3", "B6"}, ""},   // everything fails everywhere
           Row{{"b", "B1", "b", "A1", "A2", "A3"}, ""},     // one failed on both
           Row{{"b", "A1", "A2", "A3", "B1"}, "-A+A"},      // the trials are at fault
           Row{{"b", "A1", "A2", "A3", "A4", "B1"}, "-A"},  // three others failed on A alone
           Row{{"b", "A1", "A2", "A3", "A4", "B1", "B2"}, "-A+A"},  //
           Row{{"b", "A1", "A2", "A3", "B4", "B5", "B6"}, "-A"},    // one device always remains
           Row{{"c", "A1", "A2", "A3", "B4", "B5", "B6"}, "-A-B"},  //
           Row{{"b", "A1", "A2", "A3", "a", "b"}, "-A"},            // started before A was disabled
       }) {
    std::string events;
    for (const std::string& event : row.events) events += event + " ";
    INFO(events);
    CHECK(disabled_after(row.events) == row.changes);
  }
}

TEST_CASE("A trial that fails twice on slots with a common GPU is not at fault", "[orchestrator]") {
  DeviceHealth health;
  health.failed("0,1", {1, 1});
  health.failed("2,0", {1, 2});
  CHECK(health.failures("0,1") == 1);
  CHECK(health.failures("2,0") == 1);
  health.failed("3,4", {1, 3});
  CHECK(health.failures("0,1") + health.failures("2,0") + health.failures("3,4") == 0);
}

TEST_CASE("Failures on a disabled device are excused once, those of a trial at fault are not",
          "[orchestrator]") {
  DeviceHealth health;
  for (const std::size_t trial : {1, 2, 3, 4}) health.failed("A", {trial, 7});
  health.failed("B", {4, 8});
  CHECK(health.take_excused().empty());
  health.finished("B");
  CHECK(health.take_changes().size() == 1);
  std::vector<DeviceHealth::Failure> excused = health.take_excused();
  REQUIRE(excused.size() == 3);
  CHECK(excused[0].trial == 1);
  CHECK(excused[0].attempt == 7);
  CHECK(health.take_excused().empty());
  // A trial that was running there when the device was disabled.
  health.failed("A", {5, 1});
  excused = health.take_excused();
  REQUIRE(excused.size() == 1);
  CHECK(excused[0].trial == 5);
}

TEST_CASE("A suspicious device waits while a trial elsewhere can show who is at fault",
          "[orchestrator]") {
  DeviceHealth health;
  for (const std::size_t trial : {1, 2}) health.failed("A", {trial, 1});
  CHECK_FALSE(health.must_wait("A", {"B"}));
  health.failed("A", {3, 1});
  CHECK(health.must_wait("A", {"A", "B"}));
  CHECK_FALSE(health.must_wait("A", {"A"}));
  CHECK_FALSE(health.must_wait("B", {"A"}));
  for (const std::size_t trial : {4, 5, 6}) health.failed("B", {trial, 1});
  CHECK_FALSE(health.must_wait("A", {"A", "B"}));
  CHECK(health.must_wait("A", {"A", "B", "C"}));
}
