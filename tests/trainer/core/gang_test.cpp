// Trials trained together get the same numbers as each trained alone.
#include "trainer/training/gang.h"

#include <map>

#include "sweeps/catalog.h"
#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "trainer/backbones/t5.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/training/loop.h"

using namespace petlab;
using namespace petlab::trainer;
using metrics::MaskKind;
using petlab::testing::check_relative;
using petlab::testing::TinyTextWorld;
using petlab::testing::TinyWorld;

namespace {

/// The results of one trial.
struct GangRun {
  std::vector<double> losses;
  std::vector<protocol::Metric> metrics;
  NamedTensors tensors;  // at the end: parameters, moments and best values

  LoopObserver observer() {
    LoopObserver observer;
    observer.on_step = [this](std::int64_t, std::int64_t, double loss) { losses.push_back(loss); };
    observer.on_metric = [this](const protocol::Metric& metric) { metrics.push_back(metric); };
    return observer;
  }
};

/// Trains the configurations together and returns the results of each.
std::vector<GangRun> train_gang(const TinyWorld& world, const LoadedBackbone& backbone,
                                const std::vector<sweeps::TrialConfig>& configs) {
  std::vector<GangRun> runs(configs.size());
  std::vector<GangTrial> trials;
  for (std::size_t k = 0; k < configs.size(); ++k) {
    trials.push_back({configs[k], runs[k].observer()});
  }
  TrainingLoop loop(
      std::move(trials),
      load_tasks({world.task()}, configs.front().data, {world.folder.path() / "data"}, backbone),
      *backbone.model);
  loop.run(std::atomic<bool>{false});
  for (std::size_t k = 0; k < configs.size(); ++k) {
    for (const auto& [name, tensor] : loop.tensors(k)) {
      runs[k].tensors.emplace(name, tensor.clone());
    }
  }
  return runs;
}

/// Three trials that differ in every field that may differ within a gang.
std::vector<sweeps::TrialConfig> gang_of(const sweeps::TrialConfig& first) {
  std::vector<sweeps::TrialConfig> all(3, first);
  all[1].seed = {43};
  all[1].training.learning_rate *= 0.5;
  all[1].training.mask_learning_rate *= 2;
  all[2].seed = {7};
  all[2].training.max_grad_norm = 0.01;
  all[2].training.warmup_ratio = 0.5;
  return all;
}

void check_gang(const TinyWorld& world, const sweeps::TrialConfig& config,
                const Placement& placement, double loss_tolerance, double tensor_tolerance) {
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny", placement);
  const std::vector<sweeps::TrialConfig> configs = gang_of(config);
  const std::vector<GangRun> together = train_gang(world, *backbone, configs);
  for (std::size_t k = 0; k < configs.size(); ++k) {
    INFO("trial " << k);
    const GangRun alone = train_gang(world, *backbone, {configs[k]}).front();
    const GangRun& found = together[k];
    REQUIRE(found.losses.size() == alone.losses.size());
    for (std::size_t i = 0; i < alone.losses.size(); ++i) {
      INFO("step " << i + 1);
      CHECK(found.losses[i] == Approx(alone.losses[i]).epsilon(loss_tolerance));
    }
    if (tensor_tolerance == 0) continue;
    REQUIRE(found.metrics.size() == alone.metrics.size());
    for (std::size_t i = 0; i < alone.metrics.size(); ++i) {
      CHECK(found.metrics[i].name == alone.metrics[i].name);
      CHECK(found.metrics[i].split == alone.metrics[i].split);
      CHECK(found.metrics[i].step == alone.metrics[i].step);
      CHECK(found.metrics[i].value.value_or(-2) ==
            Approx(alone.metrics[i].value.value_or(-2)).epsilon(tensor_tolerance));
    }
    REQUIRE(found.tensors.size() == alone.tensors.size());
    for (const auto& [name, tensor] : alone.tensors) {
      check_relative(name, found.tensors.at(name), tensor, tensor_tolerance);
    }
  }
}

/// The results of a few steps of modules in a T5.
struct ModuleRun {
  std::vector<std::vector<double>> losses;             // (steps, trials)
  std::vector<std::map<std::string, Tensor>> trained;  // (trials): parameters at the end
};

/// Trains one module for each seed in a shared T5 pass. Each has its own examples and dropout.
ModuleRun train_in_t5(const LoadedBackbone& backbone, const TokenisedSplit& split,
                      const sweeps::ModuleConfig& config, const std::vector<std::uint64_t>& seeds) {
  const auto& t5 = dynamic_cast<const T5&>(*backbone.model);
  ModuleRequest request;
  request.config = config;
  request.tasks = 2;
  request.seeds = seeds;
  request.placement = t5.placement();
  const auto module = make_module(request, t5);
  const auto trials = static_cast<std::int64_t>(seeds.size());
  AdamW optimizer(module->parameters(), {}, trials);
  ModuleRun run;
  for (std::int64_t step = 0; step < 4; ++step) {
    std::vector<std::vector<std::int64_t>> examples;
    for (const std::uint64_t seed : seeds) {
      examples.emplace_back();
      for (std::int64_t i = 0; i < 5; ++i) {
        examples.back().push_back((static_cast<std::int64_t>(seed) + 7 * step + 3 * i) %
                                  split.size());
      }
    }
    const PackedBatch batch = pack_trials(split, examples);
    const Dropout dropout{0.1, 0.1, static_cast<std::uint64_t>(step), seeds};
    optimizer.zero_gradients();
    module->merge(step % 2);
    const Tensor encoded = t5.encode_sources(batch.input.sequences, *module, &dropout);
    const Tensor logits =
        t5.logits(t5.decode(batch.targets, batch.input.sequences, encoded, *module, &dropout));
    const Tensor each =
        smoothed_losses(logits, at::tensor(batch.targets.ids, at::kLong).roll(1), 0.1);
    std::vector<Tensor> sums;
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      const auto row = [&](std::size_t trial) {
        return batch.targets
            .offsets[static_cast<std::size_t>(batch.targets.trial_sequences[trial])];
      };
      sums.push_back(each.narrow(0, row(k), row(k + 1) - row(k)).sum());
    }
    at::stack(sums).sum().backward();
    module->gather();
    run.losses.emplace_back();
    for (const Tensor& sum : sums) run.losses.back().push_back(sum.item<double>());
    optimizer.clip(std::vector<double>(seeds.size(), 1.0));
    optimizer.step(std::vector<Rates>(seeds.size(), {1e-2, 1e-2}));
  }
  for (std::int64_t k = 0; k < trials; ++k) {
    run.trained.emplace_back();
    for (const Parameter& parameter : optimizer.parameters()) {
      run.trained.back().emplace(parameter.name, parameter.of_trial(parameter.value, k).clone());
    }
  }
  return run;
}

/// check_gang for a module that only a T5 can have. petlab trains such trials one by one because
/// their objective generates text, but the module itself supports several.
void check_gang_in_t5(const TinyTextWorld& world, const std::string& kind,
                      const Placement& placement, double loss_tolerance, double tensor_tolerance) {
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny-t5", placement);
  const protocol::TrialFile trial = world.trial(kind);
  const std::vector<TaskRun> tasks =
      load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
  const std::vector<std::uint64_t> seeds{42, 43, 7};
  const ModuleRun together = train_in_t5(*backbone, tasks[0].train, trial.config.module, seeds);
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    INFO("trial " << k);
    const ModuleRun alone = train_in_t5(*backbone, tasks[0].train, trial.config.module, {seeds[k]});
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      INFO("step " << step + 1);
      CHECK(together.losses[step][k] == Approx(alone.losses[step][0]).epsilon(loss_tolerance));
    }
    if (tensor_tolerance == 0) continue;
    REQUIRE(together.trained[k].size() == alone.trained[0].size());
    for (const auto& [name, tensor] : alone.trained[0]) {
      check_relative(name, together.trained[k].at(name), tensor, tensor_tolerance);
    }
  }
}

}  // namespace

TEST_CASE("trials trained together equal each trained alone, for every module", "[trainer]") {
  const TinyTextWorld text_world;
  const TinyWorld& world = text_world;
  std::map<std::string, int> kinds;
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    if (row.declared->backbones == sweeps::ModuleBackbones::text_to_text) {
      const std::string kind(row.kind);
      INFO(kind);
      ++kinds[kind];
      check_gang_in_t5(text_world, kind, Placement::all_in(at::kDouble), 1e-9, 1e-7);
      check_gang_in_t5(text_world, kind, {}, 1e-3, 0);
      continue;
    }
    for (const bool share : {false, true}) {
      for (const MaskKind mask : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
        sweeps::TrialConfig config = world.trial(std::string(row.kind)).config;
        config.module.share = share;
        config.module.mask = mask;
        config.module.sparsity_ratio = 0.3;
        config.training.epochs = 2;
        const std::vector<sweeps::TaskDeclaration> tasks{world.task()};
        if (!sweeps::validate(config, tasks).empty()) continue;
        INFO(row.kind << ", share " << share << ", mask " << metrics::to_string(mask));
        ++kinds[std::string(row.kind)];
        // Only the order of sums differs, which hardly shows in float64. In float32, a sum's last
        // bit can flip a mask bit in a later step, so only losses are compared.
        check_gang(world, config, Placement::all_in(at::kDouble), 1e-9, 1e-7);
        check_gang(world, config, {}, 1e-3, 0);
      }
    }
  }
  CHECK((kinds == std::map<std::string, int>{{"adapter", 6},
                                             {"full_finetuning", 1},
                                             {"head_only", 1},
                                             {"hyperformer++", 1},
                                             {"lora", 6},
                                             {"prefix", 6}}));
}

TEST_CASE("trials with gradient accumulation are trained together too", "[trainer]") {
  const TinyWorld world;
  sweeps::TrialConfig config = world.trial("adapter").config;
  config.training.gradient_accumulation = 3;
  config.training.epochs = 1;
  check_gang(world, config, Placement::all_in(at::kDouble), 1e-9, 1e-7);
}

TEST_CASE("trials stopped together resume together from their checkpoints", "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny");
  sweeps::TrialConfig config = world.trial("lora").config;
  config.module.share = true;
  config.module.mask = MaskKind::learned;
  const std::vector<sweeps::TrialConfig> configs = gang_of(config);
  const auto loop_of = [&](std::vector<GangRun>& runs, std::atomic<bool>* stop, std::size_t after) {
    std::vector<GangTrial> trials;
    for (std::size_t k = 0; k < configs.size(); ++k) {
      trials.push_back({configs[k], runs[k].observer()});
      trials[k].observer.on_step = [&runs, k, stop, after](std::int64_t, std::int64_t,
                                                           double loss) {
        runs[k].losses.push_back(loss);
        if (stop != nullptr && runs[k].losses.size() == after) *stop = true;
      };
    }
    return TrainingLoop(
        std::move(trials),
        load_tasks({world.task()}, config.data, {world.folder.path() / "data"}, *backbone),
        *backbone->model);
  };
  std::vector<GangRun> whole(configs.size());
  loop_of(whole, nullptr, 0).run(std::atomic<bool>{false});

  std::vector<GangRun> parts(configs.size());
  std::atomic<bool> stop{false};
  TrainingLoop first = loop_of(parts, &stop, 5);
  CHECK_THROWS_AS(first.run(stop), Interrupted);
  TrainingLoop second = loop_of(parts, nullptr, 0);
  for (std::size_t k = 0; k < configs.size(); ++k) {
    second.restore(first.state(k), first.tensors(k), k);
  }
  second.run(std::atomic<bool>{false});
  for (std::size_t k = 0; k < configs.size(); ++k) {
    CHECK((parts[k].losses == whole[k].losses));
    CHECK((parts[k].metrics == whole[k].metrics));
  }
  // Checkpoints of different steps cannot be trained together.
  TrainingLoop third = loop_of(parts, nullptr, 0);
  third.restore(first.state(1), first.tensors(1), 1);
  CHECK_THROWS_WITH(third.run(std::atomic<bool>{false}),
                    "the trials cannot be trained together: they are at the steps 0 and 5");
}

TEST_CASE("a field that differs within a gang is reported with both values", "[trainer]") {
  const TinyWorld world;
  const sweeps::TrialConfig config = world.trial("adapter").config;
  for (const sweeps::TrialConfig& other : gang_of(config)) {
    CHECK(!why_not_in_one_gang(config, other));
  }
  const auto why = [&](const std::function<void(sweeps::TrialConfig&)>& change) {
    sweeps::TrialConfig other = config;
    change(other);
    return why_not_in_one_gang(config, other).value_or("");
  };
  CHECK(why([](auto& c) { c.training.batch_size = 16; }) == "training.batch_size is 12 and 16");
  CHECK(why([](auto& c) { c.training.epochs = 4; }) == "training.epochs is 3 and 4");
  CHECK(why([](auto& c) { c.training.dropout = 0.5; }) == "training.dropout is -1.0 and 0.5");
  CHECK(why([](auto& c) { c.training.weight_decay = 0.5; }) ==
        "training.weight_decay is 0.1 and 0.5");
  CHECK(why([](auto& c) { c.data.max_tokens = 64; }) == "data.max_tokens is 128 and 64");
  CHECK(why([](auto& c) { c.module.bottleneck = 8; }) == "module.bottleneck is 4 and 8");
  CHECK(why([](auto& c) { c.module.kind = "head_only"; }).starts_with("module.bottleneck is 4"));
  CHECK(why([](auto& c) { c.module.mask = MaskKind::learned; }) ==
        "module.mask is \"none\" and \"learned\"");
  CHECK(why([](auto& c) { c.backbone = "./other"; }) == "backbone is \"./tiny\" and \"./other\"");
  // Fields that the module does not use may differ.
  CHECK(why([](auto& c) { c.module.rank = 5; }) == "");
  sweeps::TrialConfig several = config;
  several.tasks = {"a", "b"};
  CHECK(why_not_in_one_gang(several, several).value_or("") ==
        "tasks: trials with several tasks are trained one by one");

  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny");
  sweeps::TrialConfig other = config;
  other.training.batch_size = 16;
  CHECK_THROWS_WITH(train_gang(world, *backbone, {config, other}),
                    "the trials cannot be trained together: training.batch_size is 12 and 16");
}
