#include "orchestrator/host/slots.h"

#include <algorithm>
#include <filesystem>

#include "orchestrator/local/gpu_slots.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

TEST_CASE("A slot whose lock file was cleaned away is not given twice", "[orchestrator]") {
  const testing::TempDir parent;
  const std::filesystem::path folder = parent.path() / "slots";
  std::filesystem::create_directory(folder);
  std::optional<Slot> held = acquire_cpu_slot(folder, 1);
  REQUIRE(held);
  CHECK_FALSE(acquire_cpu_slot(folder, 1));
  std::filesystem::remove(folder / "cpu-0.lock");
  CHECK_FALSE(acquire_cpu_slot(folder, 1));
  CHECK_FALSE(acquire_cpu_slot(folder, 1));  // the first try left nothing that hides it
  const std::optional<Slot> other = acquire_cpu_slot(folder, 2);
  REQUIRE(other);
  CHECK(other->name == "cpu-1");
  // With the folder.
  std::filesystem::remove_all(folder);
  CHECK_FALSE(acquire_cpu_slot(folder, 2));
  held.reset();
  CHECK(acquire_cpu_slot(folder, 2)->name == "cpu-0");
}

TEST_CASE("What is reserved on a GPU counts where a lock file was cleaned away", "[orchestrator]") {
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
  SECTION("one between others, that nobody holds any more") {
    held.erase(held.begin() + 1);
    std::filesystem::remove(folder / "GPU-0.1.lock");
    CHECK_FALSE(slots.acquire({40000, false, true}));  // the third counts
    CHECK(slots.acquire({30000, false, true}));
  }
  SECTION("the last, that is held") {
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
