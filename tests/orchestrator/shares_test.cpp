#include "orchestrator/running/shares.h"

#include <fmt/format.h>

#include "orchestrator/local/gpu_slots.h"
#include "tests/orchestrator/scripted_run.h"
#include "tests/support/catch.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

// Shares with real GPU locks and without workers; counts the requests.
class CountedDevices final : public SharedDevices {
 public:
  CountedDevices(const std::filesystem::path& folder, std::vector<Gpu> gpus)
      : slots_(folder, std::move(gpus), 64) {}

  std::optional<std::string> acquire_share(const SlotRequest& request) override {
    ++requests;
    std::optional<Slot> slot = slots_.acquire(request);
    if (!slot) return std::nullopt;
    const std::string name = slot->name;
    held_.emplace(name, std::move(*slot));
    return name;
  }
  DeviceShare share(const std::string& slot) const override {
    return {held_.at(slot).reserved_mib, false};
  }
  void report_memory(const std::string&, std::int64_t) override {}
  Resized resize_share(const std::string&, std::int64_t) override { return Resized::done; }
  std::int64_t largest_share_mib() const override { return slots_.largest_mib(); }
  std::int64_t room_mib() const override { return slots_.room_mib(); }

  int requests = 0;

 private:
  GpuSlots slots_;
  std::map<std::string, Slot> held_;
};

}  // namespace

TEST_CASE("Among thousands of trials of different sizes few requests find one that fits",
          "[orchestrator]") {
  constexpr int kTrials = 10'000;
  std::string variants;
  for (int trial = 0; trial < kTrials; ++trial) {
    variants += fmt::format("  v{0}: {{seed: 1, user: {{n: {0}}}}}\n", trial);
  }
  testing::ScriptedRun run(variants, 64);
  RunContext context{
      run.loop, *run.store, run.launcher, {run.sweep, run.locations, run.options}, run};
  context.planning.runs = run.options.runs;
  RunState state(context);
  TrialTable& trials = state.trials;
  REQUIRE(trials.plan_all([] { return true; }));
  // The first trial is the largest: its refusal does not rule out the smaller ones.
  for (int trial = 0; trial < kTrials; ++trial) {
    trials.shapes().needed(static_cast<std::size_t>(trial), 2 * kTrials - trial);
  }
  const testing::TempDir folder;
  const std::vector<Gpu> gpus = {{0, "GPU-0", 80'000, 0}, {1, "GPU-1", 80'000, 0}};
  // Another petlab process holds all but 15,000 MiB of both.
  GpuSlots others(folder.path(), gpus, 64);
  const std::optional<Slot> first = others.acquire({63'400, false, true});
  const std::optional<Slot> second = others.acquire({63'400, false, true});
  REQUIRE(second);
  CountedDevices devices(folder.path(), gpus);
  const SlotTable& slots = state.slots;
  DeviceGuard guard(context, state);
  Shares shares(context, devices, state, guard);
  CHECK(shares.acquire([] { return true; }));
  // One refusal, then the largest trial that fits.
  REQUIRE(slots.size() == 1);
  CHECK(devices.requests <= 4);
  const std::optional<std::size_t> trial = slots.all().begin()->second.share.intended;
  REQUIRE(trial);
  const std::int64_t size = 2 * kTrials - static_cast<std::int64_t>(*trial);
  CHECK(size + size / 10 + 64 <= 15'000);
  CHECK(size + 1 + (size + 1) / 10 + 64 > 15'000);
}
