#include "orchestrator/schedule.h"

#include "tests/support/catch.h"

using namespace petlab::orchestrator;
using namespace std::chrono_literals;

namespace {
const Schedule::Time kNow = Schedule::Time() + 1h;
}

TEST_CASE("The longest trial runs first, an unknown one counts as longer", "[orchestrator]") {
  Schedule schedule({{"a", 1.0}, {"a", 100.0}, {"a", std::nullopt}});
  for (std::size_t trial = 0; trial < 3; ++trial) schedule.add(trial);
  CHECK(schedule.take("", false, kNow) == 2u);
  CHECK(schedule.take("", false, kNow) == 1u);
  CHECK(schedule.take("", false, kNow) == 0u);
  CHECK_FALSE(schedule.take("", false, kNow));
}

TEST_CASE("A higher priority goes before every length, and waits as others do", "[orchestrator]") {
  Schedule schedule({{"a", 100.0}, {"a", 1.0, 5}, {"b", 50.0, 5}, {"a", std::nullopt, -1}});
  for (std::size_t trial = 0; trial < 4; ++trial) schedule.add(trial);
  CHECK(schedule.best(kNow, {}) == 2u);
  CHECK(schedule.best(kNow, [](std::size_t trial) { return trial != 2; }) == 1u);
  CHECK(schedule.take("a", false, kNow) == 2u);
  CHECK(schedule.take("", false, kNow, [](std::size_t trial) { return trial != 1; }) == 0u);
  schedule.remove(1);
  schedule.add(1, kNow + 5s);
  CHECK(schedule.take("", false, kNow) == 3u);
  CHECK(schedule.take("", false, kNow + 5s) == 1u);
}

TEST_CASE("Of equally long trials a worker gets those whose backbone it has", "[orchestrator]") {
  Schedule schedule({{"a", 10.5}, {"b", 10.0}, {"b", 300.0}});
  for (std::size_t trial = 0; trial < 3; ++trial) schedule.add(trial);
  CHECK(schedule.take("a", false, kNow) == 2u);  // longer beats the backbone
  CHECK(schedule.take("b", false, kNow) == 1u);
  CHECK(schedule.take("b", false, kNow) == 0u);
}

TEST_CASE("A retry waits for its time and does not hold up others", "[orchestrator]") {
  Schedule schedule({{"a", 10.0}, {"a", 1.0}});
  schedule.add(0, kNow + 5s);
  schedule.add(1);
  CHECK(schedule.take("", false, kNow) == 1u);
  CHECK_FALSE(schedule.take("", false, kNow));
  CHECK(schedule.next_ready() == kNow + 5s);
  CHECK(schedule.take("", false, kNow + 5s) == 0u);
  CHECK_FALSE(schedule.next_ready());
}

TEST_CASE("A suspect is never given together with others", "[orchestrator]") {
  Schedule schedule({{"a", 10.0, 0, true}, {"a", 1.0}});
  schedule.add(0);
  schedule.add(1);
  CHECK(schedule.take("a", true, kNow) == 1u);
  CHECK_FALSE(schedule.take("a", true, kNow));
  CHECK(schedule.take("a", false, kNow) == 0u);
}

TEST_CASE("The wait before a retry doubles up to 64 times", "[orchestrator]") {
  CHECK(backoff(1s, 1) == 1s);
  CHECK(backoff(1s, 3) == 4s);
  CHECK(backoff(1s, 100) == 64s);
}
