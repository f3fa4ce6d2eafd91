// A backbone that computes in another type than that of the trained parameters.
#include "trainer/compute/placement.h"

#include "tests/trainer/core/tiny_world.h"
#include "trainer/compute/products.h"
#include "trainer/training/loop.h"
#include "trainer/worker/worker.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::TinyWorld;

namespace {

struct PlacedRun {
  std::vector<double> losses;
  std::map<std::string, Tensor> moved;  // the change of each parameter, by name
};

PlacedRun train_placed(const TinyWorld& world, const protocol::TrialFile& trial,
                       const Placement& placement) {
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny", placement);
  PlacedRun run;
  LoopObserver observer;
  observer.on_step = [&](std::int64_t, std::int64_t, double loss) { run.losses.push_back(loss); };
  TrainingLoop loop(trial.config,
                    load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone),
                    *backbone->model, observer);
  std::map<std::string, Tensor> before;
  for (const auto& [name, tensor] : loop.tensors()) {
    CHECK(tensor.scalar_type() == placement.master);
    before.emplace(name, tensor.clone());
  }
  loop.run(std::atomic<bool>{false});
  for (const Parameter& parameter : loop.model().parameters()) {
    run.moved.emplace(parameter.name, parameter.value - before.at(parameter.name));
  }
  return run;
}

}  // namespace

TEST_CASE("trained parameters stay in float32 although the backbone computes in 16 bits",
          "[trainer]") {
  const TinyWorld world;
  const bool products_alone = GENERATE(false, true);
  const at::ScalarType compute = products_alone ? at::kFloat : at::kBFloat16;
  INFO("products alone: " << products_alone);
  for (const std::string kind : {"adapter", "lora", "prefix", "full_finetuning", "head_only"}) {
    for (const bool masked : {false, true}) {
      protocol::TrialFile trial = world.trial(kind);
      if (masked && (kind == "full_finetuning" || kind == "head_only")) continue;
      trial.config.module.share = masked;
      trial.config.module.mask = masked ? metrics::MaskKind::learned : metrics::MaskKind::none;
      trial.config.training.dropout = 0;
      trial.config.training.epochs = 1;
      // These steps are too small for bfloat16 weights.
      trial.config.training.learning_rate = 1e-6;
      trial.config.training.mask_learning_rate = 1e-6;
      INFO(kind << (masked ? " masked" : ""));
      const PlacedRun wanted = train_placed(world, trial, {});
      const PlacedRun found =
          train_placed(world, trial, {at::kCPU, compute, at::kFloat, products_alone});
      REQUIRE(found.losses.size() == wanted.losses.size());
      for (std::size_t i = 0; i < wanted.losses.size(); ++i) {
        CHECK(found.losses[i] == Approx(wanted.losses[i]).epsilon(3e-2));
      }
      for (const auto& [name, moved] : wanted.moved) {
        if (name.ends_with("key.bias"))
          continue;  // has no effect on the output: its gradient is only rounding
        INFO(name);
        const double largest = moved.abs().max().item<double>();
        // Adam's first steps are about as large as the rate for any gradient, so rounding can
        // change little but their sign.
        CHECK(found.moved.at(name).abs().max().item<double>() ==
              Approx(largest).epsilon(0.3).margin(1e-9));
        CHECK(largest < 1e-5);
      }
    }
  }
}

TEST_CASE("bfloat16 needs a processor with instructions for it, or the variable to emulate them",
          "[trainer]") {
  sweeps::TrainingConfig training;
  const auto saying = [](const char* emulate) {
    return [emulate](const std::string& name) -> std::optional<std::string> {
      if (name == kEmulateVariable) return emulate;
      return std::nullopt;
    };
  };
  CHECK((placement_for(training, "cpu", saying("")) == Placement{}));
  training.compute = sweeps::ComputeType::bf16;
  const Placement wanted{at::kCPU, at::kFloat, at::kFloat, true};
  CHECK((placement_for(training, "cpu", saying("1")) == wanted));
  if (multiplies_bf16()) {
    CHECK((placement_for(training, "cpu", saying("")) == wanted));
  } else {
    CHECK_THROWS_WITH(
        placement_for(training, "cpu", saying("")),
        Catch::Contains(
            "training.compute is 'bf16', for which this processor has no instructions") &&
            Catch::Contains("PETLAB_EMULATE_BF16=1"));
  }
}
