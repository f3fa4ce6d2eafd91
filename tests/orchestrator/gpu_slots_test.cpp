#include "orchestrator/local/gpu_slots.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "orchestrator/host/gpu_locks.h"
#include "orchestrator/planning/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

constexpr std::int64_t kTotalMib = 80000;
constexpr std::int64_t kUsable = kTotalMib - kTotalMib / 50;

std::vector<Gpu> gpus(int count) {
  std::vector<Gpu> all;
  for (int index = 0; index < count; ++index) {
    all.push_back({index, fmt::format("GPU-{}", index), kTotalMib, 0});
  }
  return all;
}

SlotRequest share_of(std::int64_t mib, bool first = true) { return {mib, false, first}; }
const SlotRequest kWhole = {std::nullopt, true, true};
const SlotRequest kAll = {std::nullopt, false, true};

}  // namespace

TEST_CASE("A request for several GPUs gets all of them or none", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots run(folder.path(), gpus(4), 1);
  SlotRequest three = kWhole;
  three.gpus = 3;
  SlotRequest two = kWhole;
  two.gpus = 2;
  std::optional<Slot> first = run.acquire(three);
  REQUIRE(first);
  CHECK(first->name == "gpu-0+1+2");
  CHECK(first->gpu_uuid == "GPU-0,GPU-1,GPU-2");
  CHECK(first->gpu_selector == "GPU-0,GPU-1,GPU-2");
  CHECK(first->whole);
  CHECK_FALSE(run.may_have_room(two));
  CHECK_FALSE(run.acquire(two));
  // The refused request holds nothing.
  std::optional<Slot> last = run.acquire(kWhole);
  REQUIRE(last);
  CHECK(last->name == "gpu-3");
  first.reset();
  // A worker of these GPUs failed, so each of them is the last choice.
  for (const char* gpu : {"GPU-0", "GPU-1"}) run.use(gpu, DeviceUse::last);
  two.avoided = {"GPU-0,GPU-1"};
  const std::optional<Slot> second = run.acquire(kWhole);
  REQUIRE(second);
  CHECK(second->name == "gpu-2");
  // It avoids them only while enough others exist.
  CHECK_FALSE(run.acquire(two));
  run.use("GPU-3", DeviceUse::never);
  const std::optional<Slot> third = run.acquire(two);
  REQUIRE(third);
  CHECK(third->name == "gpu-0+1");
}

TEST_CASE("In 10,000 assignments of whole GPUs no two workers get the same one", "[orchestrator]") {
  const testing::TempDir folder;
  // Two petlab processes of one user.
  GpuSlots runs[] = {{folder.path(), gpus(8), 1}, {folder.path(), gpus(8), 1}};
  std::mt19937 random(1);
  std::vector<Slot> held;
  int assigned = 0;
  int refused = 0;
  while (assigned < 10'000) {
    if (!held.empty() && (held.size() == 8 ? random() % 4 > 0 : random() % 2 > 0)) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
    }
    std::optional<Slot> slot = runs[random() % 2].acquire(kWhole);
    CHECK(slot.has_value() == (held.size() < 8));
    if (!slot) {
      ++refused;
      continue;
    }
    ++assigned;
    for (const Slot& other : held) REQUIRE(other.gpu_uuid != slot->gpu_uuid);
    CHECK(slot->device == "cuda");
    held.push_back(std::move(*slot));
  }
  CHECK(refused > 100);
}

TEST_CASE("Shares of all petlab processes never exceed a GPU's memory", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots runs[] = {{folder.path(), gpus(3), 4}, {folder.path(), gpus(3), 6}};
  struct Held {
    Slot slot;
    int run;
  };
  std::mt19937 random(2);
  std::vector<Held> held;
  int together = 0;
  for (int round = 0; round < 2000; ++round) {
    const int run = static_cast<int>(random() % 2);
    const std::uint32_t choice = random() % 8;
    if (choice < 3 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
    } else if (choice == 3 && !held.empty()) {
      Held& one = held[random() % held.size()];
      // Its memory has settled: it needs less than expected, or asks for more.
      const auto wanted = static_cast<std::int64_t>(random() % 50'000);
      runs[one.run].report(one.slot, std::min(wanted, one.slot.reserved_mib));
      runs[one.run].resize(one.slot, wanted);
    } else {
      const SlotRequest request = choice == 4   ? kWhole
                                  : choice == 5 ? SlotRequest{std::nullopt, false, false}
                                                : share_of(1000 + random() % 40'000, random() % 2);
      if (auto slot = runs[run].acquire(request)) held.push_back({std::move(*slot), run});
    }
    std::map<std::string, std::int64_t> reserved;
    std::map<std::string, int> workers;
    std::set<std::string> whole;
    for (const Held& one : held) {
      reserved[one.slot.gpu_uuid] += one.slot.reserved_mib;
      ++workers[one.slot.gpu_uuid];
      if (one.slot.whole) whole.insert(one.slot.gpu_uuid);
    }
    for (const auto& [uuid, sum] : reserved) {
      REQUIRE(sum <= kUsable);
      REQUIRE(workers[uuid] <= 6);
      if (whole.contains(uuid)) REQUIRE(workers[uuid] == 1);
      together = std::max(together, workers[uuid]);
    }
  }
  CHECK(together > 2);
}

TEST_CASE("Workers that start together count with their reservations, until they report",
          "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(1), 8);
  std::optional<Slot> first = slots.acquire(kAll);  // its size is unknown
  REQUIRE(first);
  CHECK_FALSE(slots.acquire(share_of(1000)));
  slots.report(*first, 10'000);
  CHECK(slots.resize(*first, 11'064) == Resized::done);
  std::optional<Slot> second = slots.acquire(share_of(60'000));
  REQUIRE(second);
  // The reservation holds although the worker does not use all of it yet.
  CHECK_FALSE(slots.acquire(share_of(kUsable - 11'064 - 60'000 + 1)));
  CHECK(slots.acquire(share_of(kUsable - 11'064 - 60'000)));
  // A resize beyond the free memory is refused, but reported memory counts.
  CHECK(slots.resize(*first, 30'000) == Resized::no_room);
  CHECK(first->reserved_mib == 11'064);
  slots.report(*first, 12'000);
  CHECK(slots.resize(*first, 30'000) == Resized::no_room);
  CHECK(first->reserved_mib == 12'000);
  CHECK(slots.resize(*first, 1000) == Resized::done);
  CHECK(first->reserved_mib == 12'000);
}

TEST_CASE("Memory held by other users' processes counts as used", "[orchestrator]") {
  const testing::TempDir folder;
  std::vector<Gpu> now = gpus(2);
  now[0].used_mib = 30'000;
  GpuSlots slots(folder.path(), now, 4);
  CHECK(slots.acquire(kWhole)->name == "gpu-1");
  CHECK_FALSE(slots.acquire(share_of(kUsable + 1)));
  std::optional<Slot> on_free = slots.acquire(share_of(kUsable));
  REQUIRE(on_free);
  CHECK(on_free->gpu_uuid == "GPU-1");
  std::optional<Slot> ours = slots.acquire(share_of(20'000));
  REQUIRE(ours);
  CHECK(ours->name == "gpu-0.0");
  // Memory that our worker reported is not counted twice.
  slots.report(*ours, 15'000);
  const auto before = slots.reported();
  now[0].used_mib = 45'500;
  slots.update(now, before);
  CHECK_FALSE(slots.acquire(share_of(kUsable - 30'500 - 20'000 + 1)));
  CHECK(slots.acquire(share_of(kUsable - 30'500 - 20'000)));
  // A GPU that nvidia-smi no longer lists is not assigned.
  on_free.reset();
  slots.update({now[0]}, before);
  CHECK_FALSE(slots.acquire(kAll));
}

TEST_CASE("A worker's report counts, even while another process changes the GPU's shares",
          "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(1), 8);
  std::optional<Slot> slot = slots.acquire(share_of(1000));
  REQUIRE(slot);
  std::optional<LockFile> other = LockFile::try_lock(folder.path() / "GPU-0.lock");
  slots.report(*slot, 3000);
  CHECK(slots.reported().at("GPU-0") == 3000);
  CHECK(slot->reserved_mib == 3000);
  CHECK(slots.resize(*slot, 5000) == Resized::busy);
  CHECK(slot->reserved_mib == 3000);
  other.reset();
  CHECK(slots.resize(*slot, 5000) == Resized::done);
  CHECK(slot->reserved_mib == 5000);
}

TEST_CASE("Memory that a worker gave back is not subtracted from the memory of others",
          "[orchestrator]") {
  const testing::TempDir folder;
  std::vector<Gpu> now = gpus(1);
  now[0].used_mib = 30'000;
  GpuSlots slots(folder.path(), now, 4);
  std::optional<Slot> ours = slots.acquire(share_of(20'000));
  REQUIRE(ours);
  slots.report(*ours, 15'000);
  now[0].used_mib = 45'000;
  auto before = slots.reported();
  slots.update(now, before);
  CHECK(slots.acquire(share_of(kUsable - 50'000)));
  // The worker's next trial needs less, as first nvidia-smi and then the worker reports.
  slots.report(*ours, 0);
  now[0].used_mib = 35'000;
  slots.update(now, before);
  CHECK_FALSE(slots.acquire(share_of(kUsable - 50'000)));  // counted twice, until it reports
  slots.report(*ours, 5000);
  before = slots.reported();
  slots.update(now, before);
  CHECK_FALSE(slots.acquire(share_of(kUsable - 50'000 + 1)));
  CHECK(slots.acquire(share_of(kUsable - 50'000)));
}

TEST_CASE("A GPU is kept for a large trial, so that small ones do not starve it",
          "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(2), 8);
  std::vector<Slot> small;
  for (int count = 0; count < 4; ++count) small.push_back(*slots.acquire(share_of(20'000)));
  CHECK_FALSE(slots.acquire(kWhole));
  // Later trials go only to the other GPU.
  std::string other;
  for (const Slot& slot : small) {
    if (!slots.is_kept(slot)) other = slot.gpu_uuid;
  }
  std::optional<Slot> later = slots.acquire(share_of(20'000, false));
  REQUIRE(later);
  CHECK(later->gpu_uuid == other);
  CHECK_FALSE(slots.acquire(share_of(30'000, false)));
  std::erase_if(small, [&](const Slot& slot) { return slots.is_kept(slot); });
  CHECK(slots.acquire(kWhole));
  CHECK_FALSE(slots.is_kept(*later));
}

TEST_CASE("A GPU of unknown memory has one worker at a time", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), {{0, "GPU-0", 0, 0}}, 4);
  CHECK(slots.largest_mib() == 0);
  for (const SlotRequest& request : {kWhole, kAll, share_of(1000)}) {
    std::optional<Slot> slot = slots.acquire(request);
    REQUIRE(slot);
    CHECK_FALSE(slots.acquire(request));
    CHECK_FALSE(slots.acquire(share_of(1, false)));
  }
  // The memory of others is unknown as well; updates only show whether the GPU still exists.
  slots.update({{0, "GPU-0", 0, 0}}, {});
  CHECK(slots.acquire(kWhole));
  slots.update({}, {});
  CHECK_FALSE(slots.acquire(kWhole));
}

TEST_CASE("Each slice of a GPU is a slot", "[orchestrator]") {
  const testing::TempDir folder;
  const Gpu first{0, "MIG-a", 20'000, 0, "cuda", 0, "GPU-0"};
  const Gpu second{0, "MIG-b", 5000, 0, "cuda", 1, "GPU-0"};
  GpuSlots slots(folder.path(), {first, second}, 4);
  SlotRequest both = kWhole;
  both.gpus = 2;
  CHECK_FALSE(slots.may_have_room(both));  // CUDA shows a process only one
  const std::optional<Slot> whole = slots.acquire({std::nullopt, true, true});
  REQUIRE(whole);
  CHECK(whole->name == "gpu-0-mig-0");
  CHECK(whole->gpu_selector == "MIG-a");
  const std::optional<Slot> share = slots.acquire(share_of(4000));
  REQUIRE(share);
  CHECK(share->name == "gpu-0-mig-1.0");
  CHECK_FALSE(slots.acquire(share_of(4000)));
}

TEST_CASE("A GPU on which trials failed is used last, a disabled one never", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(3), 1);
  slots.use("GPU-0", DeviceUse::last);
  slots.use("GPU-1", DeviceUse::never);
  const std::optional<Slot> first = slots.acquire(kWhole);
  REQUIRE(first);
  CHECK(first->gpu_uuid == "GPU-2");
  const std::optional<Slot> second = slots.acquire(kWhole);
  REQUIRE(second);
  CHECK(second->gpu_uuid == "GPU-0");
  CHECK_FALSE(slots.acquire(kWhole));
  slots.use("GPU-1", DeviceUse::usual);
  CHECK(slots.acquire(kWhole));
}

TEST_CASE("Of GPUs on which trials failed, those with the fewest failures go first",
          "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(3), 1);
  SlotRequest two = kWhole;
  two.gpus = 2;
  // Trials failed on 0 and 1, and on 2 and 0.
  slots.use("GPU-0", DeviceUse::last, 2);
  for (const char* gpu : {"GPU-1", "GPU-2"}) slots.use(gpu, DeviceUse::last, 1);
  const std::optional<Slot> slot = slots.acquire(two);
  REQUIRE(slot);
  CHECK(slot->gpu_uuid == "GPU-1,GPU-2");
}

TEST_CASE("A trial gets an avoided GPU only if it avoids all of them", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(2), 4);
  SlotRequest request = share_of(50'000);
  request.avoided = {"GPU-0"};
  const std::optional<Slot> first = slots.acquire(request);
  REQUIRE(first);
  CHECK(first->gpu_uuid == "GPU-1");
  CHECK_FALSE(slots.acquire(request));
  request.avoided.insert("GPU-1");
  CHECK(slots.acquire(request));
}

TEST_CASE("Two users of one host do not get the same GPU", "[orchestrator]") {
  if (::geteuid() != 0) return testing::skip("only root can be two users");
  const testing::TempDir place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  const auto none = [](const std::string&) { return std::optional<std::string>(); };
  const std::filesystem::path folder = gpu_locks_folder(none, {"/nowhere", place.path()});
  CHECK(folder == place.path() / "petlab-gpus");
  GpuSlots ours(folder, gpus(2), 4);
  const std::optional<Slot> first = ours.acquire(kWhole);
  REQUIRE(first);
  std::optional<Slot> share = ours.acquire(share_of(50'000));
  REQUIRE(share);
  REQUIRE(::seteuid(65534) == 0);
  CHECK(gpu_locks_folder(none, {"/nowhere", place.path()}) == folder);
  GpuSlots theirs(folder, gpus(2), 4);
  CHECK_FALSE(theirs.acquire(kWhole));
  CHECK_FALSE(theirs.acquire(share_of(50'000)));
  CHECK(theirs.acquire(share_of(20'000)));
  share.reset();
  // They reuse the lock file of the other user.
  CHECK(theirs.acquire(share_of(50'000))->gpu_uuid != first->gpu_uuid);
  REQUIRE(::seteuid(0) == 0);
  // Without a folder that all users can write, there is an error.
  const testing::TempDir private_folder;
  CHECK_THROWS_WITH(gpu_locks_folder(none, {private_folder.path()}),
                    "no folder for GPU locks is writable by all users of this host: tried " +
                        (private_folder.path() / "petlab-gpus").string() +
                        "; set PETLAB_SLOTS to a folder for this user alone");
}

TEST_CASE("A share whose state cannot be read counts as the whole GPU", "[orchestrator]") {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(1), 8);
  const std::optional<Slot> half_written = slots.acquire(share_of(1000));
  half_written->lock.write("");
  CHECK_FALSE(slots.acquire(share_of(1000)));
  CHECK(slots.reported().at("GPU-0") == 0);
}

namespace {

struct Job {
  double known = 0;  // duration of earlier attempts in seconds; 0: none
  double seconds = 0;
};

// Schedules jobs on GPUs as a run does. Returns the seconds until the last one ends.
double makespan(const std::vector<Job>& jobs, int count, int shares) {
  const testing::TempDir folder;
  GpuSlots slots(folder.path(), gpus(count), shares);
  const SlotRequest request = shares == 1 ? kWhole : share_of(kUsable / shares);
  std::vector<ScheduledTrial> tasks;
  for (const Job& job : jobs) {
    tasks.push_back({"backbone", job.known > 0 ? std::optional(job.known) : std::nullopt});
  }
  Schedule schedule(tasks);
  for (std::size_t trial = 0; trial < jobs.size(); ++trial) schedule.add(trial);
  std::vector<std::pair<double, Slot>> running;  // in descending order of their ends
  double now = 0;
  while (schedule.waiting() > 0 || !running.empty()) {
    std::optional<Slot> slot;
    if (schedule.waiting() > 0) slot = slots.acquire(request);
    if (slot) {
      const double end = now + jobs[*schedule.take("backbone", false, {})].seconds;
      const auto place = std::find_if(running.begin(), running.end(),
                                      [&](const auto& other) { return other.first < end; });
      running.emplace(place, end, std::move(*slot));
    } else {
      now = running.back().first;
      running.pop_back();
    }
  }
  return now;
}

// A lower bound for the makespan of any schedule.
double bound(const std::vector<Job>& jobs, int slots) {
  double longest = 0;
  double sum = 0;
  for (const Job& job : jobs) {
    longest = std::max(longest, job.seconds);
    sum += job.seconds;
  }
  return std::max(longest, sum / slots);
}

}  // namespace

TEST_CASE("With known durations, the makespan is within a tenth of the best possible",
          "[orchestrator]") {
  std::mt19937_64 random(3);
  for (const auto& [count, shares] : {std::pair(2, 1), std::pair(8, 1), std::pair(4, 4)}) {
    for (int round = 0; round < 6; ++round) {
      // A few long trials among many short ones, as in a sweep over tasks of all sizes.
      std::lognormal_distribution<double> seconds(5, 0.3 * round);
      std::uniform_real_distribution<double> noise(0.95, 1.05);
      std::vector<Job> jobs;
      for (int trial = 0; trial < count * shares * 10; ++trial) {
        const double known = seconds(random);
        jobs.push_back({known, known * noise(random)});
      }
      INFO(count << " GPUs, " << shares << " shares, round " << round);
      CHECK(makespan(jobs, count, shares) <= 1.1 * bound(jobs, count * shares));
    }
  }
}

TEST_CASE("The makespan of recorded trials is within a tenth of the best possible",
          "[orchestrator]") {
  // Training seconds of petlab-trainer for 37 trials of one sweep: all kinds of modules on GLUE's
  // SST-2, STS-B, MRPC, CoLA and RTE (2,000 examples, 3 epochs), MiniLM on two cores shared with
  // other work. `once` has the configurations with one seed; `several` has a list of seeds for each
  // other configuration.
  const std::vector<double> once = {21.5,  47.8, 144.9, 47.6,  129.7, 172.8, 177.8, 297.9, 137.8,
                                    277.6, 42.7, 52.7,  135.1, 30.0,  157.5, 54.2,  43.2,  139.3,
                                    38.5,  50.1, 139.4, 42.7,  132.4, 40.8,  64.5};
  const std::vector<std::vector<double>> several = {
      {41.6, 39.5, 29.6}, {151.4, 168.7, 155.8}, {40.8, 49.1, 25.3}, {152.3, 153.6, 128.2}};
  std::vector<Job> jobs;
  // The known duration is that of the same or the other seeds.
  for (const double seconds : once) jobs.push_back({seconds, seconds});
  for (const std::vector<double>& seeds : several) {
    const double sum = std::accumulate(seeds.begin(), seeds.end(), 0.0);
    for (const double seconds : seeds) {
      jobs.push_back({(sum - seconds) / static_cast<double>(seeds.size() - 1), seconds});
    }
  }
  for (const auto& [count, shares] : {std::pair(2, 1), std::pair(8, 1), std::pair(2, 4)}) {
    INFO(count << " GPUs, " << shares << " shares");
    CHECK(makespan(jobs, count, shares) <= 1.1 * bound(jobs, count * shares));
  }
}
