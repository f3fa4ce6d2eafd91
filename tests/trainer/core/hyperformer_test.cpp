// Generated adapters: initial values, gradients, and the backbones that support them.
#include "trainer/modules/hyperformer.h"

#include "sweeps/catalog.h"
#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "tests/trainer/core/train_attempt.h"
#include "trainer/backbones/t5.h"
#include "trainer/training/loop.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::first_losses;
using petlab::testing::TinyTextWorld;
using Position = petlab::trainer::Hyperformer::Position;

namespace {

struct HyperWorld {
  TinyTextWorld tiny;
  BackboneStore backbones;

  protocol::TrialFile trial(int tasks = 2) const {
    protocol::TrialFile trial = tiny.trial("hyperformer++");
    for (int t = 1; t < tasks; ++t) {
      trial.tasks.push_back(trial.tasks.front());
      trial.tasks.back().name = "other-" + std::to_string(t);
      trial.config.tasks.push_back(trial.tasks.back().name);
    }
    return trial;
  }

  std::unique_ptr<Module> module(std::int64_t tasks, std::uint64_t seed = 42) {
    const auto backbone = backbones.get(tiny.folder.path() / "tiny-t5");
    ModuleRequest request;
    request.config = trial().config.module;
    request.config.hyper_hidden = 64;  // enough that some unit is always active
    request.tasks = tasks;
    request.seed = seed;
    request.placement = backbone->model->placement();
    return make_module(request, *backbone->model);
  }
};

}  // namespace

TEST_CASE("each task, layer and position has its own adapter from generators that tasks share",
          "[trainer]") {
  HyperWorld world;
  const auto module = world.module(3);
  const auto& hyper = dynamic_cast<const Hyperformer&>(*module);
  std::vector<Tensor> seen;
  for (std::int64_t task = 0; task < 3; ++task) {
    module->merge(task);
    for (std::int64_t layer = 0; layer < 4; ++layer) {
      for (const Position position : {Position::feed_forward, Position::attention}) {
        const std::vector<Tensor>& weights = hyper.adapter(layer, position);
        CHECK((weights[0].sizes() == at::IntArrayRef{4, 16}));
        CHECK((weights[2].sizes() == at::IntArrayRef{16, 4}));
        CHECK((weights[4].sizes() == at::IntArrayRef{16}));
        for (const Tensor& other : seen) CHECK(!at::equal(other, weights[0]));
        seen.push_back(weights[0].detach().clone());
      }
    }
  }
  CHECK(seen.size() == 3 * 4 * 2);
  // Merging the first task again gives the same adapters.
  module->merge(0);
  CHECK(at::equal(hyper.adapter(0, Position::feed_forward)[0], seen[0]));
}

TEST_CASE("a hypernetwork starts as its authors' does and draws each tensor separately",
          "[trainer]") {
  HyperWorld world;
  const auto module = world.module(200), other_seed = world.module(200, 43);
  const std::vector<Parameter> others = other_seed->parameters();
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Parameter parameter = module->parameters()[i];
    INFO(parameter.name);
    const Tensor& first = parameter.value;
    const bool is_embedding = parameter.name.ends_with("embedding") ||
                              parameter.name.ends_with("layer_id") ||
                              parameter.name.ends_with("position");
    const bool is_matrix = is_embedding || (first.dim() == 2);
    CHECK(parameter.decayed == is_matrix);
    CHECK(parameter.by_task == (parameter.name == "task_embedding"));
    if (!is_matrix) {
      CHECK((first == (parameter.name.ends_with("norm.weight") ? 1 : 0)).all().item<bool>());
      continue;
    }
    CHECK(!at::equal(first, others[i].value));
    const double deviation = first.std().item<double>();
    // The standard error for 200 · 5 numbers is 2 %.
    if (first.numel() >= 200) CHECK(deviation == Approx(is_embedding ? 1 : 0.01).epsilon(0.15));
    for (const Parameter& other : module->parameters()) {
      if (other.name == parameter.name || other.value.sizes() != parameter.value.sizes()) continue;
      CHECK(!at::equal(other.value, parameter.value));
    }
  }
}

TEST_CASE("a batch changes the generators and the embedding of its task only", "[trainer]") {
  HyperWorld world;
  protocol::TrialFile trial = world.trial(3);
  trial.config.training.steps = 40;
  trial.config.training.evaluate_every = 40;
  trial.config.training.batch_size = 4;
  NamedTensors start, moved;
  {
    const auto backbone = world.backbones.get(trial.backbone_folder);
    TrialModel model(trial.config, trial.tasks, backbone->pretrained());
    for (const Parameter& parameter : model.parameters()) {
      start.emplace(parameter.name, parameter.value.clone());
    }
  }
  // The first step has learning rate 0, the start of warm-up.
  first_losses(world.backbones, trial, {}, 2, &moved);
  BatchOrder order(trial.config.seed.value, {40, 40, 40}, trial.config.training);
  const std::set<std::size_t> drawn{order.at(0).task, order.at(1).task};
  REQUIRE(drawn.size() < 3);
  for (const auto& [name, before] : start) {
    INFO(name);
    if (name != "task_embedding") {
      CHECK(!at::equal(before, moved.at(name)));
      continue;
    }
    for (std::size_t t = 0; t < 3; ++t) {
      const auto task = static_cast<std::int64_t>(t);
      INFO("task " << t);
      CHECK(at::equal(before[task], moved.at(name)[task]) == !drawn.contains(t));
    }
  }
}

TEST_CASE("gradient accumulation does not change gradients of generated adapters", "[trainer]") {
  HyperWorld world;
  protocol::TrialFile trial = world.trial();
  trial.config.training.dropout = 0;
  const Placement exact = Placement::all_in(at::kDouble);
  NamedTensors whole, parts;
  const std::vector<double> losses = first_losses(world.backbones, trial, exact, 5, &whole);
  trial.config.training.gradient_accumulation = 4;
  const std::vector<double> in_parts = first_losses(world.backbones, trial, exact, 5, &parts);
  REQUIRE(losses.size() == in_parts.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CHECK(in_parts[i] == Approx(losses[i]).epsilon(1e-10));
  }
  for (const auto& [name, tensor] : whole) {
    testing::check_relative(name, parts.at(name), tensor, 1e-7);
  }
}

TEST_CASE("generators are trained in float32 although the backbone computes in 16 bits",
          "[trainer]") {
  HyperWorld world;
  protocol::TrialFile trial = world.trial();
  trial.config.training.dropout = 0;
  NamedTensors tensors;
  const std::vector<double> wanted = first_losses(world.backbones, trial, {}, 5);
  const std::vector<double> found =
      first_losses(world.backbones, trial, {at::kCPU, at::kBFloat16, at::kFloat}, 5, &tensors);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(found[i] == Approx(wanted[i]).epsilon(3e-2));
  }
  CHECK(tensors.at("encoder.down.weight.weight").scalar_type() == at::kFloat);
}

TEST_CASE("an encoder refuses generated adapters", "[trainer]") {
  HyperWorld world;
  const auto encoder = world.backbones.get(world.tiny.folder.path() / "tiny");
  ModuleRequest request;
  request.config = world.trial().config.module;
  request.tasks = 2;
  request.seed = 42;
  CHECK_THROWS_WITH(make_module(request, *encoder->model),
                    "module.kind is 'hyperformer++', which needs an encoder and a decoder: the "
                    "backbone (bert) has no decoder");
}
