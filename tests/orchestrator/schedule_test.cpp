#include "orchestrator/planning/schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

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

TEST_CASE("Among trials of one priority, those with the most GPUs go first", "[orchestrator]") {
  std::vector<ScheduledTrial> trials(4);
  trials[0] = {"a", 100.0};
  trials[1] = {"a", 1.0};
  trials[2] = {"a", 1.0};
  trials[3] = {"a", 1.0, 1};
  trials[1].gpus = 2;
  trials[2].gpus = 4;
  Schedule schedule(trials);
  for (std::size_t trial = 0; trial < 4; ++trial)
    schedule.add(trial, trial == 1 ? kNow + 5s : kNow);
  using Counts = std::map<std::int64_t, std::int64_t>;
  CHECK(schedule.waiting_by_gpus() == Counts{{1, 2}, {2, 1}, {4, 1}});
  CHECK(schedule.take("a", false, kNow) == 3u);
  CHECK(schedule.take("a", false, kNow) == 2u);
  CHECK(schedule.waiting_by_gpus() == Counts{{1, 1}, {2, 1}});
  schedule.set_alone(1, false);
  CHECK(schedule.waiting(2) == 1);
  CHECK(schedule.take("a", false, kNow + 5s) == 1u);
  CHECK(schedule.take("a", false, kNow + 5s) == 0u);
  CHECK(schedule.waiting_by_gpus().empty());
}

TEST_CASE("A higher priority beats any duration, and still waits for its start time",
          "[orchestrator]") {
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

TEST_CASE("Among trials of similar length a worker gets those of its backbone", "[orchestrator]") {
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

TEST_CASE("A suspect is never assigned together with others", "[orchestrator]") {
  Schedule schedule({{"a", 10.0, 0, true}, {"a", 1.0}});
  schedule.add(0);
  schedule.add(1);
  CHECK(schedule.take("a", true, kNow) == 1u);
  CHECK_FALSE(schedule.take("a", true, kNow));
  CHECK(schedule.take("a", false, kNow) == 0u);
}

TEST_CASE("A trial that is set to run alone does so immediately", "[orchestrator]") {
  Schedule schedule({{"a", 10.0}, {"a", 1.0}, {"a", 1.0}});
  for (std::size_t trial = 0; trial < 2; ++trial) schedule.add(trial);
  schedule.add(2, kNow + 1s);
  schedule.set_alone(0, true);
  schedule.set_alone(2, false);
  CHECK(schedule.take("a", true, kNow) == 1u);
  CHECK_FALSE(schedule.take("a", true, kNow + 1s));
  CHECK(schedule.take("a", false, kNow + 1s) == 0u);
  CHECK(schedule.trial(0).whole_device);
  CHECK(schedule.take("a", false, kNow + 1s) == 2u);
  CHECK_FALSE(schedule.trial(2).whole_device);
}

TEST_CASE("A set of numbers finds the first one from any position on", "[orchestrator]") {
  std::mt19937 random(7);
  for (const std::size_t bound : {1u, 64u, 65u, 4096u, 5000u, 300'000u}) {
    NumberSet numbers(bound);
    std::set<std::size_t> plain;
    for (int round = 0; round < 2000; ++round) {
      const std::size_t number = random() % bound;
      if (random() % 3 == 0) {
        numbers.erase(number);
        plain.erase(number);
      } else {
        numbers.insert(number);
        plain.insert(number);
      }
      const std::size_t least = random() % bound;
      const auto next = plain.lower_bound(least);
      REQUIRE(numbers.first(least) == (next == plain.end() ? std::nullopt : std::optional(*next)));
    }
  }
  CHECK_FALSE(NumberSet().first());
}

TEST_CASE("Taking a trial returns the one that a search through all waiting trials would find",
          "[orchestrator]") {
  std::mt19937 random(5);
  const std::string groups[] = {"a", "b", "c"};
  std::vector<ScheduledTrial> tasks(300);
  for (ScheduledTrial& task : tasks) {
    task.group = groups[random() % 3];
    task.priority = static_cast<std::int64_t>(random() % 2);
    if (random() % 3 != 0) task.expected_seconds = 1.0 + random() % 8;
    task.alone = random() % 4 == 0;
  }
  Schedule schedule(tasks);
  std::map<std::size_t, Schedule::Time> waiting;
  const auto less = [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t trial) {
      return std::tuple(-tasks[trial].priority, -tasks[trial].expected_seconds.value_or(1e300),
                        trial);
    };
    return rank(a) < rank(b);
  };
  const auto urgency = [&](std::size_t trial) {
    return std::pair(tasks[trial].priority,
                     std::floor(std::log2(tasks[trial].expected_seconds.value_or(1e300))));
  };
  Schedule::Time now = kNow;
  for (int round = 0; round < 20'000; ++round) {
    now += std::chrono::milliseconds(random() % 3);
    const std::size_t trial = random() % tasks.size();
    if (random() % 2 == 0) {
      if (waiting.contains(trial)) continue;
      const auto at =
          random() % 2 == 0 ? now + std::chrono::milliseconds(random() % 50) : Schedule::Time();
      schedule.add(trial, at);
      waiting[trial] = at;
    } else if (random() % 5 == 0) {
      REQUIRE(schedule.remove(trial) == (waiting.erase(trial) > 0));
    } else {
      const std::string group = random() % 4 == 0 ? "" : groups[random() % 3];
      const bool with_others = random() % 2 == 0;
      const auto fits = [&](std::size_t one) { return one % 5 != trial % 5; };
      std::vector<std::size_t> able;
      for (const auto& [one, ready_at] : waiting) {
        if (ready_at <= now && !(with_others && tasks[one].alone) && fits(one)) able.push_back(one);
      }
      std::sort(able.begin(), able.end(), less);
      std::optional<std::size_t> expected;
      for (const std::size_t one : able) {
        if (expected && urgency(one) != urgency(able.front())) break;
        if (!expected || tasks[one].group == group) expected = one;
        if (tasks[one].group == group) break;
      }
      REQUIRE(schedule.take(group, with_others, now, fits) == expected);
      if (expected) waiting.erase(*expected);
    }
    REQUIRE(schedule.waiting() == waiting.size());
  }
}

TEST_CASE("Adding and taking trials stays fast with a million waiting", "[orchestrator]") {
  // The best trials come last, and half of the trials are for a group without a worker. Each of the
  // two once cost time for every waiting trial.
  constexpr std::size_t kTrials = 1'000'000;
  std::vector<ScheduledTrial> tasks(kTrials);
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    tasks[trial].group = trial < kTrials / 2 ? "a" : "b";
    tasks[trial].expected_seconds = 1 + static_cast<double>(trial) * 1e-9;
    tasks[trial].alone = trial % 10 == 0;
  }
  const auto began = std::chrono::steady_clock::now();
  Schedule schedule(std::move(tasks));
  for (std::size_t trial = 0; trial < kTrials; ++trial) {
    schedule.add(trial, trial % 3 == 0 ? kNow + 1h : Schedule::Time());
  }
  for (std::size_t trial = 0; trial < kTrials; trial += 4) REQUIRE(schedule.remove(trial));
  std::size_t taken = 0;
  while (schedule.take("a", true, kNow)) ++taken;
  CHECK(taken + schedule.waiting() == kTrials - kTrials / 4);
  CHECK(schedule.take("a", true, kNow + 1h));
  CHECK(std::chrono::steady_clock::now() - began < 30s);
}

TEST_CASE("The wait before a retry doubles until it is 64 times as long", "[orchestrator]") {
  CHECK(backoff(1s, 1) == 1s);
  CHECK(backoff(1s, 3) == 4s);
  CHECK(backoff(1s, 100) == 64s);
}
