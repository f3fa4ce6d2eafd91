// petlab run with real worker processes on the GPUs of a fake nvidia-smi.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/host/slots.h"
#include "protocol/trial_directory.h"
#include "sweeps/memory.h"
#include "sweeps/sweep_file.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::Background;
using testing::CommandResult;
using testing::ScriptedSweep;

namespace {

constexpr std::int64_t kTotal = 80000;

// A line of the workers' history (scripted_worker.cpp): the memory that all processes hold of a GPU
// and their number, after one of them asked for more.
struct Allocation {
  std::string uuid;
  std::int64_t pid = 0, mib = 0, processes = 0;
};

class FakeGpus {
 public:
  explicit FakeGpus(int count) {
    std::string list;
    for (int index = 0; index < count; ++index) {
      list += fmt::format("{} GPU-{}f00 {}\n", index, index, kTotal);
    }
    folder_.write("gpus", list);
    std::filesystem::create_directories(folder_.path() / "bin");
    std::filesystem::create_symlink(testing::source_dir() / "tests/orchestrator/fake_nvidia_smi.py",
                                    folder_.path() / "bin/nvidia-smi");
  }
  void others(const std::string& lines) const { folder_.write("others", lines); }
  void bad(const std::string& line) const { folder_.write("bad", line); }
  void broken(const std::string& output) const { folder_.write("broken", output); }
  std::string variables() const {
    return fmt::format("FAKE_GPUS={0} PATH={0}/bin:$PATH PETLAB_SLOTS={0}/slots",
                       folder_.path().string());
  }
  std::filesystem::path slots() const { return folder_.path() / "slots"; }
  std::vector<Allocation> history() const {
    std::ifstream in(folder_.path() / "history");
    std::vector<Allocation> all;
    for (Allocation one; in >> one.uuid >> one.pid >> one.mib >> one.processes;) all.push_back(one);
    return all;
  }

 private:
  testing::TempDir folder_;
};

std::string trials(int count, const std::string& user, int first_seed = 1) {
  std::string text;
  for (int trial = 0; trial < count; ++trial) {
    text += fmt::format("  v{}: {{seed: {}, user: {{{}}}}}\n", first_seed + trial,
                        first_seed + trial, user);
  }
  return text;
}

CommandResult run(const ScriptedSweep& sweep, const FakeGpus& gpus, const std::string& words) {
  return sweep.petlab(fmt::format("run sweep.yaml --retry-delay 10ms --grace 300ms --worker {} {}",
                                  testing::program("scripted-worker").string(), words),
                      gpus.variables());
}

std::int64_t most_processes(const std::vector<Allocation>& history) {
  std::int64_t most = 0;
  for (const Allocation& one : history) most = std::max(most, one.processes);
  return most;
}

}  // namespace

TEST_CASE("Each worker has its own GPU, even across two petlab processes", "[orchestrator]") {
  const FakeGpus gpus(8);
  const ScriptedSweep first(trials(24, "gpu_mib: 1000, steps: 3, step_ms: 5"));
  const ScriptedSweep second(trials(24, "gpu_mib: 2000, steps: 3, step_ms: 5"));
  Background other([&] { return run(second, gpus, "--fresh-workers"); });
  const CommandResult result = run(first, gpus, "");
  INFO(result.err << other.wait().err);
  CHECK(result.exit_code == 0);
  CHECK(other.wait().exit_code == 0);
  const std::vector<Allocation> history = gpus.history();
  CHECK(most_processes(history) == 1);
  std::set<std::string> used;
  for (const Allocation& one : history) used.insert(one.uuid);
  CHECK(used.size() > 1);
  CHECK(first.number("SELECT count(*) FROM attempts WHERE outcome = 'finished' AND device LIKE "
                     "'gpu-_ GPU-_f00' AND substr(device, 5, 1) = substr(device, 11, 1) AND "
                     "device_memory_mib = 1000") == 24);
  const std::string id = first.text("SELECT trial_id FROM trials LIMIT 1");
  const auto trial = protocol::read_trial_file(
      protocol::TrialDirectory(first.folder.path() / "sweep.runs", id, 1).trial_json());
  CHECK(trial.device == "cuda");
  CHECK(trial.device_uuid.starts_with("GPU-"));
  CHECK(trial.device_memory_mib == kTotal - kTotal / 50);
}

TEST_CASE("Packed workers share a GPU and never exceed its memory", "[orchestrator]") {
  const FakeGpus gpus(2);
  const ScriptedSweep sweep(trials(12, "gpu_mib: 24000, load_ms: 30, steps: 20, step_ms: 5") +
                            trials(12, "gpu_mib: 9000, load_ms: 30, steps: 20, step_ms: 5", 50));
  const ScriptedSweep other(trials(8, "gpu_mib: 20000, load_ms: 30, steps: 20, step_ms: 5"));
  Background concurrent([&] { return run(other, gpus, "--pack 3 --trial-memory 24GiB"); });
  const CommandResult result = run(sweep, gpus, "--pack 6 --trial-memory 26000MiB");
  INFO(result.err << concurrent.wait().err);
  CHECK(result.exit_code == 0);
  CHECK(concurrent.wait().exit_code == 0);
  const std::vector<Allocation> history = gpus.history();
  for (const Allocation& one : history) CHECK(one.mib <= kTotal);
  CHECK(most_processes(history) > 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 24);
  CHECK(other.number("SELECT count(*) FROM attempts") == 8);
}

TEST_CASE("A trial of unknown size has a GPU alone until it reports its memory", "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(6, "gpu_mib: 10000, steps: 40, step_ms: 10"));
  CHECK(run(sweep, gpus, "--pack 3").exit_code == 0);
  const std::vector<Allocation> history = gpus.history();
  // The first worker takes half and then all of its memory before another one starts.
  REQUIRE(history.size() > 4);
  CHECK(history[0].pid == history[1].pid);
  CHECK(history[1].mib == 10000);
  CHECK(most_processes(history) == 3);
}

TEST_CASE("A trial of unknown size gets the share that the formula for petlab-trainer estimates",
          "[orchestrator]") {
  const FakeGpus gpus(1);
  // It holds its memory for a while before it reports it.
  const std::string script = "gpu_mib: 600, load_ms: 300, steps: 20, step_ms: 10";
  const ScriptedSweep sweep(trials(3, script));
  const auto run_as = [&](const ScriptedSweep& of, const std::string& name,
                          const std::string& words) {
    const CommandResult result =
        of.petlab(fmt::format("run sweep.yaml --worker {} {}",
                              testing::program("scripted-worker").string(), words),
                  fmt::format("{} SCRIPTED_NAME={}", gpus.variables(), name));
    INFO(result.err);
    CHECK(result.exit_code == 0);
  };
  const auto reserved = [](const ScriptedSweep& of, int seed) {
    const std::string id =
        of.text(fmt::format("SELECT trial_id FROM trials WHERE seed = {}", seed));
    return protocol::read_trial_file(
               protocol::TrialDirectory(of.folder.path() / "sweep.runs", id, 1).trial_json())
        .device_memory_mib;
  };
  run_as(sweep, "petlab-trainer", "--pack 3 --device gpu --fresh-workers");
  const sweeps::Sweep loaded = sweeps::load_sweep(sweep.folder.path() / "sweep.yaml",
                                                  {sweep.folder.path() / "home", {}, {}});
  const std::int64_t formula = sweeps::to_mib(
      sweeps::estimate_memory(loaded, loaded.trials.front().config, sweeps::MemoryDevice::gpu)
          .total());
  for (const int seed : {1, 2, 3}) {
    CHECK(reserved(sweep, seed) == formula + formula / 10 + 64);
  }
  CHECK(gpus.history()[0].pid != gpus.history()[1].pid);
  // --trial-memory overrides the formula, and a measurement overrides both.
  const ScriptedSweep with_option(trials(1, script));
  run_as(with_option, "petlab-trainer", "--pack 3 --trial-memory 5000MiB");
  CHECK(reserved(with_option, 1) == 5000);
  with_option.folder.write("sweep.yaml", with_option.sweep_text(trials(2, script)));
  run_as(with_option, "petlab-trainer", "--pack 3 --trial-memory 5000MiB");
  CHECK(reserved(with_option, 2) == 600 + 60 + 64);
  // The formula does not apply to other workers.
  const ScriptedSweep other(trials(1, script));
  run_as(other, "somebody", "--pack 3");
  CHECK(reserved(other, 1) == kTotal - kTotal / 50);
}

TEST_CASE("A share that cannot shrink at first shrinks later", "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(2, "gpu_mib: 10000, steps: 150, step_ms: 20"));
  Background whole([&] { return run(sweep, gpus, "--pack 2"); });
  REQUIRE(sweep.until("SELECT count(*) FROM attempts WHERE started_at IS NOT NULL"));
  {
    // Another petlab process holds the GPU's lock just when the trial's memory has settled.
    const auto held = orchestrator::LockFile::try_lock(gpus.slots() / "GPU-0f00.lock");
    REQUIRE(held);
    REQUIRE(sweep.until("SELECT count(*) FROM progress WHERE step > 20"));
    CHECK(sweep.number("SELECT count(*) FROM attempts") == 1);
  }
  INFO(whole.wait().err);
  CHECK(whole.wait().exit_code == 0);
  CHECK(most_processes(gpus.history()) == 2);
}

TEST_CASE("A trial that runs out of memory on a share is retried on a whole GPU",
          "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(3, "gpu_mib: 50000, load_ms: 100, steps: 10, step_ms: 5"));
  const CommandResult result = run(sweep, gpus, "--pack 4 --trial-memory 15GiB --retries 0");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'failed' AND event_kind = "
                     "'out_of_memory' AND device LIKE 'gpu-0.%'") > 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts a JOIN attempts b ON b.trial = a.trial AND "
                     "b.number = a.number + 1 WHERE a.event_kind = 'out_of_memory' AND b.device "
                     "NOT LIKE 'gpu-0 GPU%'") == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 3);
}

TEST_CASE("Running out of memory on a whole GPU counts against the retries", "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(1, "gpu_mib: 90000"));
  const CommandResult result = run(sweep, gpus, "--pack 2 --retries 1");
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("CUDA out of memory (2 of 2 attempts)") != std::string::npos);
  CHECK(sweep.number("SELECT count(*) FROM attempts") == 3);  // the first was on a share
}

TEST_CASE("A GPU that others use is avoided, but its free memory can be shared", "[orchestrator]") {
  const FakeGpus gpus(2);
  gpus.others("GPU-0f00 50000\n");
  const ScriptedSweep alone(trials(4, "gpu_mib: 1000"));
  CHECK(run(alone, gpus, "").exit_code == 0);
  CHECK(alone.number("SELECT count(*) FROM attempts WHERE device LIKE 'gpu-0%'") == 0);
  const ScriptedSweep packed(trials(8, "gpu_mib: 20000, steps: 10, step_ms: 20"));
  CHECK(run(packed, gpus, "--pack 8 --trial-memory 22000MiB").exit_code == 0);
  CHECK(packed.number("SELECT count(*) FROM attempts WHERE device LIKE 'gpu-0.%'") > 0);
  std::map<std::string, std::int64_t> most;
  for (const Allocation& one : gpus.history()) most[one.uuid] = std::max(most[one.uuid], one.mib);
  CHECK(most["GPU-0f00"] <= kTotal - 50000);
}

TEST_CASE("Without GPUs each core trains one trial with one thread", "[orchestrator]") {
  const ScriptedSweep sweep(trials(3, "steps: 2"));
  const CommandResult result =
      sweep.petlab("run sweep.yaml --worker " + testing::program("scripted-worker").string(),
                   "PATH=/usr/bin:/bin");
  CHECK(result.exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE device LIKE 'cpu-%'") == 3);
  CHECK(sweep.number(fmt::format("SELECT count(*) FROM attempts WHERE CAST(substr(device, 5) AS "
                                 "INTEGER) >= {}",
                                 orchestrator::usable_cores().numbers.back() + 1)) == 0);
  const std::string id = sweep.text("SELECT trial_id FROM trials LIMIT 1");
  const auto trial = protocol::read_trial_file(
      protocol::TrialDirectory(sweep.folder.path() / "sweep.runs", id, 1).trial_json());
  CHECK(trial.threads == 1);
  CHECK(trial.device == "cpu");
}

TEST_CASE("GPU options that cannot be met are refused, not ignored", "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(1, "steps: 2"));
  const auto refusal = [&](const std::string& words, const std::string& variables) {
    const CommandResult result = sweep.run(words, variables);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  const std::string none = "PATH=/nowhere";
  CHECK(refusal("--device gpu", none) ==
        "petlab: --device is gpu, but nvidia-smi is not on PATH\n");
  CHECK(refusal("--pack 2", none) == "petlab: --pack needs GPUs, but nvidia-smi is not on PATH\n");
  CHECK(refusal("--device cpu --pack 2", gpus.variables()) ==
        "petlab: --pack needs GPUs, but --device is cpu\n");
  CHECK(refusal("--trial-memory 1GiB", gpus.variables()) ==
        "petlab: --trial-memory requires --pack\n");
  CHECK(refusal("", gpus.variables() + " CUDA_VISIBLE_DEVICES=3")
            .find("CUDA_VISIBLE_DEVICES names '3', must be") != std::string::npos);
  // An explicit --device cpu also works on a machine with GPUs.
  CHECK(sweep.run("--device cpu", gpus.variables()).exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE device LIKE 'cpu-%'") == 1);
}

TEST_CASE("A trial with several GPUs sees them all, and no other trial does", "[orchestrator]") {
  const FakeGpus gpus(3);
  const ScriptedSweep sweep(trials(6, "steps: 3, step_ms: 5") +
                            "  two: {seed: 7, resources.gpus: 2}\n"
                            "  three: {seed: 8, resources: {gpus: 3}}\n");
  const CommandResult result = run(sweep, gpus, "");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(sweep.text("SELECT device FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                   "seed = 8") == "gpu-0+1+2 GPU-0f00,GPU-1f00,GPU-2f00");
  CHECK(sweep.number("SELECT count(*) FROM attempts a JOIN trials t ON t.key = a.trial WHERE "
                     "seed = 7 AND device LIKE 'gpu-_+_ GPU-_f00,GPU-_f00'") == 1);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE device LIKE 'gpu-_ GPU-_f00'") == 6);
  CHECK(sweep.number("SELECT count(*) FROM attempts a JOIN attempts b ON a.trial < b.trial AND "
                     "a.started_at < b.ended_at AND b.started_at < a.ended_at JOIN trials t ON "
                     "t.key IN (a.trial, b.trial) WHERE seed = 8") == 0);
  const auto refusal = [&](const std::string& words, const std::string& variables) {
    const CommandResult refused = sweep.run(words, variables);
    CHECK(refused.exit_code == 2);
    return refused.err.substr(refused.err.find(" is "));
  };
  CHECK(refusal("", "PATH=/nowhere") ==
        " is 2, but workers train on CPU cores: nvidia-smi is not on PATH\n");
  CHECK(refusal("--pack 2", gpus.variables()) == " is 2, but --pack shares GPUs; run without it\n");
  const FakeGpus few(2);
  CHECK(refusal("", few.variables()) == " is 3, but petlab has 2 whole GPU(s) here\n");
}

TEST_CASE("If one of two GPUs fails every trial, the other trains all 60", "[orchestrator]") {
  for (const std::string words : {"crash ", "exit ", "error ", "device ", "device --pack 4",
                                  "crash --fresh-workers --retries 0"}) {
    INFO(words);
    const FakeGpus gpus(2);
    gpus.bad("GPU-0f00 " + words.substr(0, words.find(' ')));
    const ScriptedSweep sweep(trials(60, "steps: 2, step_ms: 3, gpu_mib: 1000"));
    const CommandResult result = run(sweep, gpus, words.substr(words.find(' ')));
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished' AND device LIKE "
                       "'gpu-1%'") == 60);
    CHECK(sweep.number("SELECT count(*) FROM attempts WHERE outcome = 'finished'") == 60);
    std::int64_t notes = 0;
    for (std::size_t at = 0;
         (at = result.err.find("is disabled for this run", at)) != result.err.npos; ++at) {
      ++notes;
    }
    CHECK(notes == 1);
    CHECK(result.err.find("gpu-0 is disabled for this run: ") != std::string::npos);
    // A later plan shows no failed trials either.
    CHECK(sweep.plan().out.find("failed") == std::string::npos);
  }
}

TEST_CASE("A run does not fall back to CPU cores if GPUs cannot be queried", "[orchestrator]") {
  const FakeGpus gpus(1);
  gpus.broken("NVIDIA-SMI has failed because it could not communicate with the driver\n");
  const ScriptedSweep sweep(trials(1, "steps: 2"));
  const CommandResult refused = sweep.run("", gpus.variables());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "petlab: the GPUs cannot be queried: nvidia-smi ended with exit code 9: NVIDIA-SMI has "
        "failed because it could not communicate with the driver; fix that, or train on CPU cores "
        "with --device cpu\n");
  CHECK_FALSE(std::filesystem::exists(sweep.database()));
  CHECK(sweep.run("--device cpu", gpus.variables()).exit_code == 0);
  CHECK(sweep.number("SELECT count(*) FROM attempts WHERE device LIKE 'cpu-%'") == 1);
}

TEST_CASE("Trials of a higher priority begin first", "[orchestrator]") {
  const ScriptedSweep sweep(
      "  low: {seed: 1, priority: -1}\n  middle: {seed: 2}\n  high: {seed: 3, priority: 10}\n"
      "  higher: {seed: 4, priority: 11}\n");
  CHECK(sweep.run("--slots 1 --fresh-workers").exit_code == 0);
  CHECK(sweep.text("SELECT group_concat(seed, ' ') FROM (SELECT t.seed FROM attempts a JOIN trials "
                   "t ON t.key = a.trial ORDER BY a.started_at)") == "4 3 2 1");
}

TEST_CASE("A size that is not a whole number of MiB is rounded up", "[orchestrator]") {
  const FakeGpus gpus(1);
  const ScriptedSweep sweep(trials(1, "gpu_mib: 1, steps: 1"));
  // One byte more than 1 MiB.
  const CommandResult result = run(sweep, gpus, "--pack 2 --trial-memory 1048577");
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const std::string id = sweep.text("SELECT trial_id FROM trials");
  const auto trial = protocol::read_trial_file(
      protocol::TrialDirectory(sweep.folder.path() / "sweep.runs", id, 1).trial_json());
  CHECK(trial.device_memory_mib == 2);
}
