#include "cli/running/plan_memory.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::cli {
namespace {

sweeps::Sweep three_needs(const sweeps::testing::Home& home) {
  home.t5_backbone("t5-small", 512, 6);
  return home.load(R"(sweep: memory
base: {backbone: minilm, task: cola, training.batch_size: 32}
variants:
  vanilla: {module.kind: adapter, module.bottleneck: 16}
  full: {module.kind: full_finetuning}
  text: {module.kind: lora, backbone: t5-small}
grid: {seed: [1, 2, 3]}
)");
}

TEST_CASE("Trials that need the same memory share one row", "[cli]") {
  const sweeps::testing::Home home;
  const sweeps::Sweep sweep = three_needs(home);
  const auto device = sweeps::MemoryDevice::cpu;
  const auto estimates = estimate_all(sweep, device);
  REQUIRE(estimates.size() == 9);
  std::ostringstream out;
  print_memory(out, sweep, estimates, device);
  CHECK("\n" + out.str() == R"(
memory of petlab-trainer on a CPU by formula, in MiB, if every text has data.max_tokens tokens:
trials  variant  kind             tokens     peak  weights  optimizer  activations  workspace  program  total
──────  ───────  ───────────────  ─────────  ────  ───────  ─────────  ───────────  ─────────  ───────  ─────
     3  vanilla  adapter          4096       step       88          4          399         72      125    686
     3  full     full_finetuning  4096       step      174        349          642         72      125   1362
     3  text     lora             4096 + 96  step      234         12          582         96      125   1049
)");
}

TEST_CASE("The memory of a trial in JSON has parts that add up", "[cli]") {
  const sweeps::testing::Home home;
  const sweeps::Sweep sweep = three_needs(home);
  const auto of = [&](std::size_t trial, sweeps::MemoryDevice device) {
    return memory_json(sweeps::estimate_memory(sweep, sweep.trials[trial].config, device), device);
  };
  const auto memory = of(6, sweeps::MemoryDevice::cpu);
  CHECK(memory.at("device") == "cpu");
  CHECK(memory.at("peak") == "step");
  CHECK(memory.at("tokens") == 32 * 128);
  CHECK(memory.at("target_tokens") == 32 * 3);  // a class number: at most ▁, 1 and the end token
  CHECK(memory.at("mapped_mib") <= memory.at("weights_mib"));
  std::int64_t sum = 0;
  for (const char* part : {"weights", "optimizer", "activations", "workspace", "program"}) {
    sum += memory.at(std::string(part) + "_mib").get<std::int64_t>();
  }
  const auto total = memory.at("total_mib").get<std::int64_t>();
  CHECK(total <= sum);  // each part is rounded up
  CHECK(total > sum - 5);
  const auto encoder = of(0, sweeps::MemoryDevice::gpu);
  CHECK(encoder.at("device") == "gpu");
  CHECK(encoder.at("mapped_mib") == 0);
  CHECK_FALSE(encoder.contains("target_tokens"));
}

}  // namespace
}  // namespace petlab::cli
