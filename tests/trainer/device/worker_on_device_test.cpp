// A worker's reports about a device's memory, and its handling of too little memory.
#include <torch/version.h>

#include <sstream>
#include <tuple>

#include "tests/trainer/core/tiny_world.h"
#include "tests/trainer/device/tested_device.h"
#include "trainer/worker/worker.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::events_of;
using petlab::testing::limit_device_memory;
using petlab::testing::read_events;
using petlab::testing::tested_device;
using petlab::testing::TinyWorld;

namespace {

TrialOutcome train_there(const std::filesystem::path& attempt, BackboneStore& backbones,
                         const std::string& error = "") {
  std::ostringstream log;
  const std::atomic<bool> never{false};
  double now = 1000;
  return train_gang(
      {attempt}, backbones, never, [&] { return now += 1; }, log, nullptr,
      [&](const auto&, const std::string& device, const auto&) {
        CHECK(device == "cuda");
        TORCH_CHECK(error.empty(), error);
        return Placement{tested_device(), at::kFloat, at::kFloat};
      });
}

protocol::TrialFile trial_of(const TinyWorld& world) {
  protocol::TrialFile trial = world.trial("adapter");
  trial.device = "cuda";
  trial.config.training.epochs = 1;
  return trial;
}

}  // namespace

TEST_CASE("a worker reports its peak device memory", "[trainer][device][pretend]") {
  const TinyWorld world;
  const auto attempt = world.attempt("runs", trial_of(world));
  BackboneStore backbones;
  REQUIRE(train_there(attempt, backbones) == TrialOutcome::finished);
  const auto events = read_events(attempt);
  const auto finished = events_of<protocol::Finished>(events);
  REQUIRE(finished.size() == 1);
  REQUIRE(finished[0].device_memory_mib.has_value());
  // The backbone's weights alone take about 10 KiB.
  CHECK(*finished[0].device_memory_mib > 0.01);
  CHECK(*finished[0].device_memory_mib < 64);
  double most = 0;
  for (const auto& progress : events_of<protocol::Progress>(events)) {
    most = std::max(most, progress.device_memory_mib.value_or(0));
  }
  CHECK(most > 0.01);
  CHECK(most <= *finished[0].device_memory_mib);
}

TEST_CASE("a trial's peak device memory does not include that of the trial before it",
          "[trainer][device][pretend]") {
  const TinyWorld world;
  const auto peak = [&](const std::string& runs, std::int64_t batch_size) {
    protocol::TrialFile trial = trial_of(world);
    trial.config.training.batch_size = batch_size;
    const auto attempt = world.attempt(runs, trial);
    BackboneStore backbones;
    REQUIRE(train_there(attempt, backbones) == TrialOutcome::finished);
    return *events_of<protocol::Finished>(read_events(attempt)).at(0).device_memory_mib;
  };
  const double small = peak("small", 2);
  const double large = peak("large", 40);
  CHECK(large > small);
  CHECK(peak("small-again", 2) == Approx(small));
}

TEST_CASE("a trial's device memory does not include the backbone of the trial before it",
          "[trainer][device][pretend]") {
  TinyWorld world;
  // A large backbone, whose memory blocks the small one cannot reuse.
  world.folder.write("large/config.json", R"({"model_type": "bert", "vocab_size": 14,
    "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 1024, "max_position_embeddings": 16, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0})");
  std::filesystem::copy(world.folder.path() / "tiny/vocab.txt", world.folder.path() / "large");
  world.write_weights("large", encoder_tensors(read_encoder_config(world.folder.path() / "large")));
  const auto peak = [&](const std::string& runs, BackboneStore& backbones) {
    const auto attempt = world.attempt(runs, trial_of(world));
    REQUIRE(train_there(attempt, backbones) == TrialOutcome::finished);
    return *events_of<protocol::Finished>(read_events(attempt)).at(0).device_memory_mib;
  };
  BackboneStore backbones;
  const double alone = peak("alone", backbones);
  backbones.get(world.folder.path() / "large", {tested_device(), at::kFloat, at::kFloat});
  CHECK(peak("after", backbones) == alone);
}

TEST_CASE("a device's numerics have its model and LibTorch's version, but no threads",
          "[trainer][device][pretend]") {
  const TinyWorld world;
  const auto attempt = world.attempt("runs", trial_of(world));
  BackboneStore backbones;
  REQUIRE(train_there(attempt, backbones) == TrialOutcome::finished);
  // The pretend device has no driver that could report a model.
  CHECK(events_of<protocol::Started>(read_events(attempt)).at(0).numerics ==
        std::string(R"({"version":")") + kNumerics + R"(","device":"cuda","gpu":"unknown",)" +
            R"("libtorch":")" + TORCH_VERSION +
            R"(","kernels":"libtorch","layout":"packed","gang":1})");
}

TEST_CASE("a trial that needs more memory than the device has fails for that reason",
          "[trainer][device][pretend]") {
  const TinyWorld world;
  const auto attempt = world.attempt("runs", trial_of(world));
  BackboneStore backbones;
  // A page, less than any test needs. Memory held by other tests counts too.
  limit_device_memory(1 << 12);
  const TrialOutcome outcome = train_there(attempt, backbones);
  limit_device_memory(0);
  CHECK(outcome == TrialOutcome::failed);
  const auto failed = events_of<protocol::Failed>(read_events(attempt));
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].kind == "out_of_memory");
  CHECK_THAT(failed[0].reason, Catch::StartsWith("the pretend device is out of memory: asked for"));
  // The worker can still train the next trial.
  protocol::TrialFile next = trial_of(world);
  next.trial_id = "fedcba9876543210";
  CHECK(train_there(world.attempt("runs", next), backbones) == TrialOutcome::finished);
}

TEST_CASE("too little memory fails the trial, and any other device error fails the worker",
          "[trainer][device]") {
  const TinyWorld world;
  std::int64_t number = 0;
  constexpr auto kTrialFailed = TrialOutcome::failed;
  constexpr auto kWorkerFailed = TrialOutcome::device_failed;
  for (const auto& [message, kind, outcome] :
       {std::tuple{"CUDA error: out of memory", "out_of_memory", kTrialFailed},
        std::tuple{"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                   "out_of_memory", kTrialFailed},
        std::tuple{"CUDA error: an illegal memory access was encountered", "device", kWorkerFailed},
        std::tuple{"CUDA error: uncorrectable ECC error encountered", "device", kWorkerFailed},
        std::tuple{"CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`",
                   "device", kWorkerFailed},
        std::tuple{"cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "device", kWorkerFailed},
        std::tuple{"HIP error: unspecified launch failure", "device", kWorkerFailed},
        // Text from the user's file must not count as a device error.
        std::tuple{"label 'CUDA error: ' is not known", "error", kTrialFailed}}) {
    const auto attempt = world.attempt("runs", trial_of(world), ++number);
    BackboneStore backbones;
    CHECK(train_there(attempt, backbones, message) == outcome);
    const auto failed = events_of<protocol::Failed>(read_events(attempt));
    REQUIRE(failed.size() == 1);
    CHECK(failed[0].kind == kind);
    CHECK(failed[0].reason == message);
  }
}
