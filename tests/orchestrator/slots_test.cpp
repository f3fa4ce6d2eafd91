#include "orchestrator/host/slots.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/local/gpu_slots.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

UsableCores cores(std::vector<int> numbers) {
  UsableCores usable;
  usable.in_mask = numbers.size();
  usable.numbers = std::move(numbers);
  return usable;
}

// Acquires slots until none is free.
std::vector<Slot> all_of(const CpuSlots& slots) {
  std::vector<Slot> all;
  while (auto slot = slots.acquire()) all.push_back(std::move(*slot));
  return all;
}

std::vector<std::string> names_of(const std::vector<Slot>& slots) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.push_back(slot.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("CPU slots are the usable cores, by number", "[orchestrator]") {
  const testing::TempDir folder;
  std::vector<Slot> held = all_of(CpuSlots(folder.path(), cores({3, 5}), 2, 1));
  CHECK(names_of(held) == Names{"cpu-3", "cpu-5"});
  // Jobs with other cores do not wait; jobs that share some of these cores get the others.
  CHECK(names_of(all_of(CpuSlots(folder.path(), cores({0, 1}), 2, 1))) == Names{"cpu-0", "cpu-1"});
  CHECK(names_of(all_of(CpuSlots(folder.path(), cores({4, 5, 6}), 3, 1))) ==
        Names{"cpu-4", "cpu-6"});
  CHECK(all_of(CpuSlots(folder.path(), cores({3}), 1, 1)).empty());
  held.erase(held.begin());
  CHECK(names_of(all_of(CpuSlots(folder.path(), cores({3}), 1, 1))) == Names{"cpu-3"});
}

TEST_CASE("A slot has as many cores as its worker has threads", "[orchestrator]") {
  const testing::TempDir folder;
  UsableCores some = cores({0, 1, 4, 5, 6});
  some.are_chosen = true;
  CHECK(workers_on(some, 2) == 2);
  const std::vector<Slot> held = all_of(CpuSlots(folder.path(), some, 2, 2));
  CHECK(names_of(held) == Names{"cpu-0", "cpu-4"});
  CHECK(held[1].bound_to == std::vector{4, 5});
  CHECK(held[1].further.size() == 1);
  // Both slots hold their cores, and one core is left.
  CHECK(names_of(all_of(CpuSlots(folder.path(), some, 5, 1))) == Names{"cpu-6"});
  // With more threads than cores, a slot has all cores.
  const testing::TempDir other;
  CHECK(workers_on(some, 64) == 1);
  CHECK(names_of(all_of(CpuSlots(other.path(), some, 1, 64))) == Names{"cpu-0"});
}

TEST_CASE("More workers than cores share the cores, and are not bound to any", "[orchestrator]") {
  const testing::TempDir folder;
  UsableCores two = cores({2, 3});
  two.are_chosen = true;
  const std::vector<Slot> held = all_of(CpuSlots(folder.path(), two, 3, 1));
  CHECK(names_of(held) == Names{"cpu-2", "cpu-3", "cpu-2.1", "cpu-3.1"});
  for (const Slot& slot : held) CHECK(slot.bound_to.empty());
  const testing::TempDir other;
  for (const Slot& slot : all_of(CpuSlots(other.path(), two, 2, 1))) {
    CHECK(slot.bound_to.size() == 1);
  }
}

TEST_CASE("A quota limits the number of slots, separately for each control group",
          "[orchestrator]") {
  const testing::TempDir folder;
  const testing::TempDir machine;
  machine.write("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const auto in_group = [&](const std::string& group, const std::string& quota) {
    machine.write("proc/self/cgroup", "0::/" + group + "\n");
    machine.write("sys/fs/cgroup/" + group + "/cpu.max", quota + "\n");
    return usable_cores(machine.path());
  };
  const UsableCores half = in_group("half", "50000 100000");
  CHECK(half.numbers.size() == 1);
  CHECK(half.quota == 0.5);
  CHECK_FALSE(half.are_chosen);
  CHECK(workers_on(half, 8) == 1);
  const UsableCores other = in_group("other", "50000 100000");
  const UsableCores ample = in_group("ample", "102400000 100000");
  CHECK(ample.numbers.size() == usable_cores().in_mask);
  CHECK(ample.quota == 1024.0);
  if (half.in_mask < 2) return;  // this machine has only one processor
  CHECK(half.quota_counts());
  CHECK_FALSE(ample.quota_counts());
  const CpuSlots slots(folder.path(), half, 1, 1);
  const std::vector<Slot> held = all_of(slots);
  CHECK(held.size() == 1);
  CHECK_FALSE(slots.acquire());
  CHECK(all_of(CpuSlots(folder.path(), other, 1, 1)).size() == 1);
  CHECK(all_of(CpuSlots(folder.path(), ample, 1, 1)).size() == ample.numbers.size());
}

TEST_CASE("A slot whose lock file was deleted is not assigned twice", "[orchestrator]") {
  const testing::TempDir parent;
  const std::filesystem::path folder = parent.path() / "slots";
  std::filesystem::create_directory(folder);
  const CpuSlots one(folder, cores({0}), 1, 1);
  std::optional<Slot> held = one.acquire();
  REQUIRE(held);
  CHECK_FALSE(one.acquire());
  std::filesystem::remove(folder / "cpu-0.lock");
  CHECK_FALSE(one.acquire());
  CHECK_FALSE(one.acquire());  // the first try left no file that hides it
  const CpuSlots two(folder, cores({0, 1}), 2, 1);
  const std::optional<Slot> other = two.acquire();
  REQUIRE(other);
  CHECK(other->name == "cpu-1");
  // The whole folder is deleted.
  std::filesystem::remove_all(folder);
  CHECK_FALSE(two.acquire());
  held.reset();
  CHECK(two.acquire()->name == "cpu-0");
}

TEST_CASE("A reservation on a GPU counts even if its lock file was deleted", "[orchestrator]") {
  const testing::TempDir parent;
  const std::filesystem::path folder = parent.path() / "slots";
  std::filesystem::create_directory(folder);
  GpuSlots slots(folder, {{0, "GPU-0", 80000, 0}}, 8);
  std::vector<Slot> held;
  for (int number = 0; number < 3; ++number) {
    held.push_back(*slots.acquire({30000 - 10000 * number, false, true}));
  }
  const SlotRequest rest = {30000, false, true};
  CHECK_FALSE(slots.acquire(rest));
  SECTION("one in the middle, no longer held") {
    held.erase(held.begin() + 1);
    std::filesystem::remove(folder / "GPU-0.1.lock");
    CHECK_FALSE(slots.acquire({40000, false, true}));  // the third counts
    CHECK(slots.acquire({30000, false, true}));
  }
  SECTION("the last one, still held") {
    std::filesystem::remove(folder / "GPU-0.2.lock");
    held.erase(held.begin());
    CHECK_FALSE(slots.acquire(rest));
    CHECK(slots.resize(held.front(), 21000) == Resized::no_room);
    CHECK(slots.resize(held.front(), 19000) == Resized::done);
    held.pop_back();
    CHECK(slots.acquire(rest));
  }
  SECTION("all") {
    std::filesystem::remove_all(folder);
    CHECK_FALSE(slots.acquire(rest));
    CHECK_FALSE(slots.acquire({std::nullopt, true, true}));
    held.clear();
    CHECK(slots.acquire({std::nullopt, true, true}));
  }
}
