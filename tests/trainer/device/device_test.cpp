// Training, evaluation and decoding on a device give the CPU's numbers.
#include <algorithm>
#include <map>
#include <tuple>

#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "tests/trainer/device/emulated_kernels.h"
#include "tests/trainer/device/tested_device.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/backbones/generation.h"
#include "trainer/modules/mask_selection.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/gang.h"
#include "trainer/training/loop.h"
#include "trainer/training/step.h"

using namespace petlab;
using namespace petlab::trainer;
using metrics::MaskKind;
using petlab::testing::check_relative;
using petlab::testing::counted;
using petlab::testing::counts_what_is_tested;
using petlab::testing::device_counts;
using petlab::testing::DeviceCounts;
using petlab::testing::emulated_launches;
using petlab::testing::emulates_kernels;
using petlab::testing::normal_rows;
using petlab::testing::tested_device;
using petlab::testing::TinyTextWorld;
using petlab::testing::TinyWorld;

namespace {

Placement there(at::ScalarType type) { return {tested_device(), type, type}; }

/// The results of a trial.
struct DeviceRun {
  std::vector<double> losses;
  std::vector<protocol::Metric> metrics;
  NamedTensors tensors;  // on the host
};

std::vector<DeviceRun> train_on(const protocol::TrialFile& trial,
                                const std::vector<sweeps::TrialConfig>& configs,
                                const Placement& placement) {
  BackboneStore backbones;
  const auto backbone = backbones.get(trial.backbone_folder, placement);
  std::vector<DeviceRun> runs(configs.size());
  const SharedTasks tasks(
      load_tasks(trial.tasks, configs.front().data, trial.data_folders, *backbone));
  std::vector<std::unique_ptr<TrainingTrial>> trials;
  for (std::size_t k = 0; k < configs.size(); ++k) {
    LoopObserver observer;
    observer.on_step = [&run = runs[k]](std::int64_t step, std::int64_t, double loss) {
      run.losses.push_back(loss);
      CHECK(step == static_cast<std::int64_t>(run.losses.size()));
    };
    observer.on_metric = [&run = runs[k]](const protocol::Metric& metric) {
      run.metrics.push_back(metric);
    };
    trials.push_back(
        std::make_unique<TrainingTrial>(configs[k], tasks, backbone->pretrained(), observer));
  }
  TrainingLoop loop(std::move(trials));
  loop.run(std::atomic<bool>{false});
  for (std::size_t k = 0; k < configs.size(); ++k) {
    for (const auto& [name, tensor] : loop.tensors(k)) {
      CHECK(tensor.device() == placement.device);
      runs[k].tensors.emplace(name, tensor.to(at::kCPU).clone());
    }
  }
  return runs;
}

void check_alike(const DeviceRun& found, const DeviceRun& wanted, double tolerance) {
  REQUIRE(found.losses.size() == wanted.losses.size());
  for (std::size_t i = 0; i < wanted.losses.size(); ++i) {
    CHECK(found.losses[i] == Approx(wanted.losses[i]).epsilon(tolerance));
  }
  REQUIRE(found.metrics.size() == wanted.metrics.size());
  for (std::size_t i = 0; i < wanted.metrics.size(); ++i) {
    CHECK(found.metrics[i].name == wanted.metrics[i].name);
    REQUIRE(found.metrics[i].value.has_value() == wanted.metrics[i].value.has_value());
    if (wanted.metrics[i].value) {
      CHECK(*found.metrics[i].value == Approx(*wanted.metrics[i].value).epsilon(tolerance));
    }
  }
  REQUIRE(found.tensors.size() == wanted.tensors.size());
  for (const auto& [name, tensor] : wanted.tensors) {
    check_relative(name, found.tensors.at(name), tensor, tolerance);
  }
}

/// The combinations of sharing and masks that a kind of module supports.
std::vector<std::pair<bool, MaskKind>> forms_of(const std::string& kind) {
  if (kind == "full_finetuning" || kind == "head_only" || kind == "hyperformer++") {
    return {{false, MaskKind::none}};
  }
  return {{false, MaskKind::none},
          {true, MaskKind::learned},
          {false, MaskKind::learned},
          {true, MaskKind::random}};
}

}  // namespace

TEST_CASE("an encoder's trials on a device have the CPU's numbers", "[trainer][device]") {
  const TinyWorld world;
  const std::string backbone = GENERATE("tiny", "tiny-modernbert");
  for (const std::string kind : {"adapter", "lora", "prefix", "full_finetuning", "head_only"}) {
    for (const auto& [share, mask] : forms_of(kind)) {
      INFO(backbone << " " << kind << (share ? " shared " : " ") << static_cast<int>(mask));
      protocol::TrialFile trial = world.trial(kind);
      trial.backbone_folder = world.folder.path() / backbone;
      trial.config.module.share = share;
      trial.config.module.mask = mask;
      trial.config.training.epochs = 1;
      trial.config.training.gradient_accumulation = 2;
      const std::vector<sweeps::TrialConfig> configs{trial.config};
      // In float64, because the CPU's kernels sum in another order: in float32, Adam's first
      // steps would amplify the last bits of gradients too much.
      const DeviceRun wanted = train_on(trial, configs, Placement::all_in(at::kDouble)).front();
      check_alike(train_on(trial, configs, there(at::kDouble)).front(), wanted, 1e-6);
    }
  }
}

TEST_CASE("a T5's trials on a device have the CPU's numbers", "[trainer][device]") {
  const TinyTextWorld world;
  for (const std::string kind : {"adapter", "lora", "prefix", "full_finetuning", "hyperformer++"}) {
    for (const auto& [share, mask] : forms_of(kind)) {
      INFO(kind << (share ? " shared " : " ") << static_cast<int>(mask));
      protocol::TrialFile trial = world.trial(kind);
      if (kind == "hyperformer++") {
        trial.tasks.push_back(trial.tasks.front());
        trial.tasks.back().name = "other";
        trial.config.tasks.push_back("other");
      }
      trial.config.module.share = share;
      trial.config.module.mask = mask;
      trial.config.training.epochs = 1;
      trial.config.training.label_smoothing = 0.1;
      trial.config.decoding.beams = 2;
      const std::vector<sweeps::TrialConfig> configs{trial.config};
      const DeviceRun wanted = train_on(trial, configs, Placement::all_in(at::kDouble)).front();
      check_alike(train_on(trial, configs, there(at::kDouble)).front(), wanted, 1e-6);
    }
  }
}

TEST_CASE("masks of layers and tasks on a device equal the CPU's", "[trainer][device]") {
  const TinyWorld world;
  using metrics::MaskCombination;
  for (const MaskCombination combine :
       {MaskCombination::or_, MaskCombination::and_, MaskCombination::add}) {
    INFO(static_cast<int>(combine));
    protocol::TrialFile trial = world.trial("adapter");
    trial.config.module.share = true;
    trial.config.module.mask = MaskKind::learned;
    trial.config.module.combine = combine;
    trial.config.training.epochs = 1;
    trial.tasks.push_back(trial.tasks.front());
    trial.tasks.back().name = "other";
    trial.config.tasks.push_back("other");
    const DeviceRun wanted =
        train_on(trial, {trial.config}, Placement::all_in(at::kDouble)).front();
    check_alike(train_on(trial, {trial.config}, there(at::kDouble)).front(), wanted, 1e-6);
  }
}

TEST_CASE("trials trained together on a device have the CPU's numbers", "[trainer][device]") {
  const TinyTextWorld world;
  using Kinds = std::vector<std::string>;
  const auto check = [](const Kinds& kinds, const auto& trial_of) {
    INFO("kinds from " << kinds.front() << " to " << kinds.back());
    std::vector<sweeps::TrialConfig> configs;
    for (const std::string& kind : kinds) {
      configs.push_back(trial_of(kind).config);
      std::tie(configs.back().module.share, configs.back().module.mask) =
          forms_of(kind)[std::min<std::size_t>(1, forms_of(kind).size() - 1)];
      configs.back().training.epochs = 1;
      configs.back().seed = {configs.size()};
    }
    configs.back().training.max_grad_norm = 0.01;
    const protocol::TrialFile trial = trial_of(kinds.front());
    const std::vector<DeviceRun> wanted = train_on(trial, configs, Placement::all_in(at::kDouble));
    const std::vector<DeviceRun> found = train_on(trial, configs, there(at::kDouble));
    for (std::size_t k = 0; k < configs.size(); ++k) check_alike(found[k], wanted[k], 1e-6);
  };
  for (const Kinds& kinds : {Kinds{"adapter", "adapter"}, Kinds{"lora", "lora"},
                             Kinds{"prefix", "prefix"}, Kinds{"adapter", "head_only", "lora"}}) {
    check(kinds, [&](const std::string& kind) { return world.TinyWorld::trial(kind); });
  }
  check({"hyperformer++", "adapter", "lora"},
        [&](const std::string& kind) { return world.trial(kind); });
}

TEST_CASE("gradients of a step on a device equal the CPU's", "[trainer][device]") {
  const TinyTextWorld texts;
  const TinyWorld words;
  for (const bool text : {false, true}) {
    for (const std::string kind : {"adapter", "lora", "prefix", "full_finetuning"}) {
      for (const auto& [share, mask] : forms_of(kind)) {
        protocol::TrialFile trial = text ? texts.trial(kind) : words.trial(kind);
        trial.config.module.share = share;
        trial.config.module.mask = mask;
        std::vector<std::map<std::string, Tensor>> gradients;
        std::vector<double> losses;
        for (const Placement& placement : {Placement::all_in(at::kDouble), there(at::kDouble)}) {
          BackboneStore backbones;
          const auto backbone = backbones.get(trial.backbone_folder, placement);
          const std::vector<TaskRun> tasks =
              load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
          TrainingTrial training(trial.config, tasks, backbone->pretrained(), LoopObserver());
          TrainingTrial* const alone = &training;
          losses.push_back(take_step({&alone, 1}).item<double>());
          auto& by_name = gradients.emplace_back();
          for (const Parameter& parameter : training.model().parameters()) {
            by_name.emplace(parameter.name, parameter.gradient.to(at::kCPU));
          }
        }
        CHECK(losses[1] == Approx(losses[0]).epsilon(1e-6));
        REQUIRE(gradients[1].size() == gradients[0].size());
        for (const auto& [name, wanted] : gradients[0]) {
          INFO((text ? "T5, " : "encoder, ") << kind << " " << static_cast<int>(mask));
          check_relative(name, gradients[1].at(name), wanted, 1e-6);
        }
      }
    }
  }
}

TEST_CASE("float32 losses on a device equal the CPU's to six digits", "[trainer][device]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.config.training.epochs = 1;
  const DeviceRun wanted = train_on(trial, {trial.config}, {}).front();
  const DeviceRun found = train_on(trial, {trial.config}, there(at::kFloat)).front();
  REQUIRE(found.losses.size() == wanted.losses.size());
  // Only the first loss: Adam's steps amplify rounding.
  CHECK(found.losses.front() == Approx(wanted.losses.front()).epsilon(1e-6));
}

TEST_CASE("a 16-bit trial on a device has about the losses of a 32-bit one", "[trainer][device]") {
  const TinyTextWorld texts;
  const TinyWorld words;
  for (const bool text : {false, true}) {
    for (const std::string kind : {"adapter", "prefix", "full_finetuning"}) {
      INFO((text ? "T5, " : "encoder, ") << kind);
      protocol::TrialFile trial = text ? texts.trial(kind) : words.trial(kind);
      trial.config.training.epochs = 1;
      const DeviceRun wanted = train_on(trial, {trial.config}, there(at::kFloat)).front();
      const DeviceRun found =
          train_on(trial, {trial.config}, {tested_device(), at::kBFloat16, at::kFloat}).front();
      REQUIRE(found.losses.size() == wanted.losses.size());
      CHECK(found.losses.front() == Approx(wanted.losses.front()).epsilon(0.02));
      for (const auto& [name, tensor] : found.tensors) CHECK(tensor.scalar_type() == at::kFloat);
    }
  }
}

TEST_CASE("a T5 generates the CPU's texts with a device's kernel for packed sequences",
          "[trainer][device]") {
  TinyTextWorld world;
  // Heads wide enough for the kernel.
  nlohmann::json config = nlohmann::json::parse(
      std::ifstream(world.folder.path() / "tiny-t5/config.json"), nullptr, true, true);
  config["d_kv"] = 8;
  world.folder.write("tiny-t5/config.json", config.dump());
  world.write_weights("tiny-t5", t5_tensors(read_t5_config(world.folder.path() / "tiny-t5")));
  PackedSequences sources;
  sources.ids = {3, 4, 5, 1, 6, 1, 7, 8, 9, 10, 11, 1};
  sources.offsets = {0, 4, 6, 12};
  sources.examples = {0, 1, 2};
  sources.trial_sequences = {0, 3};
  GenerationOptions options;
  options.beams = 3;
  options.min_tokens = 2;
  options.max_tokens = 9;
  const T5 here = T5::load(world.folder.path() / "tiny-t5");
  const T5 device = T5::load(world.folder.path() / "tiny-t5", there(at::kFloat));
  const auto wanted = generate(here, sources, Hooks(), options);
  const DeviceCounts before = device_counts();
  const auto found = generate(device, sources, Hooks(), options);
  // At least one step uses the kernel in each layer.
  if (counts_what_is_tested()) {
    CHECK(counted(before, device_counts()).fused_attentions >= 2);
  }
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    REQUIRE(found[i].size() == wanted[i].size());
    for (std::size_t b = 0; b < wanted[i].size(); ++b) {
      CHECK(found[i][b].ids == wanted[i][b].ids);
      CHECK(found[i][b].score == Approx(wanted[i][b].score).epsilon(1e-5));
    }
  }
}

/// Counts the second step of a trial on the tested device; the kernels include petlab's.
DeviceCounts counts_of_step(const protocol::TrialFile& trial) {
  BackboneStore backbones;
  const auto backbone = backbones.get(trial.backbone_folder, there(at::kFloat));
  const std::vector<TaskRun> tasks =
      load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
  TrainingTrial training(trial.config, tasks, backbone->pretrained(), LoopObserver());
  TrainingTrial* const alone = &training;
  take_step({&alone, 1});
  training.finish_step();
  const DeviceCounts before = device_counts();
  const std::int64_t launched = emulated_launches();
  const Tensor losses = take_step({&alone, 1});
  DeviceCounts counts = counted(before, device_counts());
  counts.kernels += emulated_launches() - launched;
  CHECK(losses.size(0) == 1);
  return counts;
}

TEST_CASE("a step on a device never waits and copies little", "[trainer][device][counted]") {
  const TinyTextWorld texts;
  const TinyWorld words;
  const bool dropped = GENERATE(false, true);
  for (const bool text : {false, true}) {
    for (const std::string kind : {"adapter", "lora", "prefix", "full_finetuning"}) {
      for (const auto& [share, mask] : forms_of(kind)) {
        INFO((text ? "T5, " : "encoder, ")
             << kind << " " << static_cast<int>(mask) << (dropped ? ", dropout" : ""));
        protocol::TrialFile trial = text ? texts.trial(kind) : words.trial(kind);
        trial.config.module.share = share;
        trial.config.module.mask = mask;
        if (!dropped) trial.config.training.dropout = 0;
        const DeviceCounts counts = counts_of_step(trial);
        CHECK(counts.synchronisations == 0);
        CHECK(counts.copies_out == 0);
        // An encoder copies ids, positions, types and first tokens; a T5 the ids of both sides and
        // their distances. Both copy targets, the layout of sequences for each kind of attention
        // (2 or 3), rates and steps. Dropout adds the keys of its streams and the keys of rows:
        // of tokens, first tokens and the head, or of both sides.
        CHECK(counts.copies_in <= (dropped ? 12 : 9));
        // LibTorch's operations take about a hundred for each of dropout's 5 or 7 draws, for any
        // number of layers. The pretend device counts an operation on a list once per tensor.
        const std::int64_t most = emulates_kernels() ? (text ? 900 : 320) : (text ? 1900 : 1000);
        if (dropped) CHECK(counts.kernels <= most);
        // No copy is as large as an activation. Most bytes are keys: 640 for each purpose and
        // layer.
        CHECK(counts.bytes_in <= (dropped ? 64000 : 16000));
      }
    }
  }
}

TEST_CASE("an encoder's layer takes few launches in training", "[trainer][device][counted]") {
  struct Most {
    const char* kind;
    double by_kernels, by_operations;
  };
  for (const Most& most : {Most{"adapter", 34, 90}, {"lora", 40, 90}, {"prefix", 30, 90}}) {
    std::vector<std::int64_t> kernels;
    for (const int layers : {2, 6}) {
      TinyWorld world;
      const std::filesystem::path folder = world.folder.path() / "tiny";
      nlohmann::json config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
      config["num_hidden_layers"] = layers;
      world.folder.write("tiny/config.json", config.dump());
      world.write_weights("tiny", encoder_tensors(read_encoder_config(folder)));
      protocol::TrialFile trial = world.trial(most.kind);
      trial.config.module.share = true;
      trial.config.module.mask = MaskKind::learned;
      kernels.push_back(counts_of_step(trial).kernels);
    }
    INFO(most.kind << ": " << kernels[0] << " launches with 2 layers, " << kernels[1] << " with 6");
    CHECK(static_cast<double>(kernels[1] - kernels[0]) / 4 <=
          (emulates_kernels() ? most.by_kernels : most.by_operations));
  }
}

TEST_CASE("a trial on a device can be interrupted, resumed, stored and loaded on a CPU",
          "[trainer][device]") {
  const TinyTextWorld world;
  for (const std::string kind : {"adapter", "prefix", "full_finetuning"}) {
    INFO(kind);
    protocol::TrialFile trial = world.trial(kind);
    if (kind != "full_finetuning") {
      trial.config.module.share = true;
      trial.config.module.mask = MaskKind::learned;
    }
    trial.config.training.checkpoint_every = 3;
    const DeviceRun whole = train_on(trial, {trial.config}, there(at::kFloat)).front();

    BackboneStore backbones;
    const auto backbone = backbones.get(trial.backbone_folder, there(at::kFloat));
    const auto tasks = [&] {
      return load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
    };
    std::vector<double> losses;
    std::atomic<bool> stop{false};
    LoopObserver observer;
    observer.on_step = [&](std::int64_t, std::int64_t, double loss) { losses.push_back(loss); };
    std::size_t reported = 0;
    observer.on_checkpoint = [&] {
      reported = losses.size();
      stop = true;
    };
    TrainingLoop first(trial.config, tasks(), backbone->pretrained(), observer);
    CHECK_THROWS_AS(first.run(stop), Interrupted);
    CHECK(first.state().step == 3);
    // Losses are reported before the checkpoint: a resumed attempt does not repeat these steps.
    CHECK(reported == 3);
    CHECK(losses.size() == 3);
    const std::filesystem::path file = world.folder.path() / (kind + ".ckpt");
    write_checkpoint(file, {trial.trial_id, first.state(), first.tensors()});

    observer.on_checkpoint = nullptr;
    TrainingLoop second(trial.config, tasks(), backbone->pretrained(), observer);
    const TrialCheckpoint kept = read_checkpoint(file, trial.trial_id);
    second.restore(kept.state, kept.tensors);
    second.run(std::atomic<bool>{false});
    REQUIRE(losses.size() == whole.losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i] == Approx(whole.losses[i]).epsilon(counts_what_is_tested() ? 0 : 1e-4));
    }
    for (const auto& [name, tensor] : second.tensors()) {
      INFO(name);
      if (kind == "full_finetuning" && !counts_what_is_tested()) {
        // A GPU sums gradients of embeddings in a varying order.
        check_relative(name, tensor.to(at::kCPU), whole.tensors.at(name), 1e-3);
      } else {
        CHECK(tensor.to(at::kCPU).equal(whole.tensors.at(name)));
      }
    }

    Artifact artifact;
    artifact.trial_id = trial.trial_id;
    artifact.config = sweeps::to_json(trial.config).dump();
    artifact.backbone_digest = "sha256-of-the-backbone";
    artifact.numerics = "0";
    store_model(second.model(), trial.config, trial.tasks, artifact);
    const std::filesystem::path stored = world.folder.path() / (kind + ".petl");
    write_artifact(stored, artifact);
    const auto on_cpu = backbones.get(trial.backbone_folder);
    TrialModel model =
        load_model(read_artifact(stored), trial.config, trial.tasks, on_cpu->pretrained());
    model.merge(0);
    const std::vector<TaskRun> runs = tasks();
    const std::atomic<bool> never{false};
    const Scores scores =
        model.objective(0).score(runs[0].test, predict(model, 0, runs[0].test, never));
    std::size_t compared = 0;
    for (const protocol::Metric& metric : whole.metrics) {
      if (metric.split != "test") continue;
      for (const auto& [name, value] : scores.metrics) {
        if (name != metric.name) continue;
        ++compared;
        REQUIRE(value.has_value() == metric.value.has_value());
        if (value) {
          CHECK(*value == Approx(*metric.value).epsilon(counts_what_is_tested() ? 0 : 1e-4));
        }
      }
    }
    CHECK(compared == 2);
  }
}

TEST_CASE("a NaN loss on a device is found and its step reported", "[trainer][device]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.config.training.learning_rate = 1e30;
  trial.config.training.warmup_ratio = 0;
  std::string on_cpu, on_device;
  for (const auto& [placement, text] :
       {std::pair{Placement(), &on_cpu}, std::pair{there(at::kFloat), &on_device}}) {
    try {
      train_on(trial, {trial.config}, placement);
    } catch (const NotFinite& error) {
      *text = error.what();
    }
  }
  CHECK_FALSE(on_device.empty());
  CHECK(on_device == on_cpu);
}

TEST_CASE("masks selected on a device equal select_mask's", "[trainer][device]") {
  // Scores with ties, zeros of both signs, infinities and NaN.
  const auto infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> scores{0.5f,  -0.5f, 0.5f, 0.0f,  -0.0f,     2.0f,
                                  -3.0f, 0.5f,  1.0f, -1.0f, infinity,  std::nanf(""),
                                  0.25f, -0.5f, 0.5f, 7.0f,  -infinity, 0.125f};
  const auto n = static_cast<std::int64_t>(scores.size());
  for (double ratio = 0; ratio <= 1.0; ratio += 0.0625) {
    INFO("ratio " << ratio);
    std::vector<float> wanted(scores.size());
    select_mask(std::span<const float>(scores), ratio, std::span<float>(wanted));
    WeightPlan plan;
    plan.name = "weight";
    plan.shape = {n};
    plan.layers = 1;
    plan.mask = MaskKind::learned;
    plan.sparsity_ratio = ratio;
    MaskedWeight weight(plan, there(at::kFloat));
    weight.scores().copy_(at::tensor(scores).view({1, n}));
    weight.values().fill_(1);
    weight.merge(0, false);
    CHECK(weight.layer(0).to(at::kCPU).view({n}).equal(at::tensor(wanted)));
  }
}

TEST_CASE("masks of long rows on a device equal select_mask's", "[trainer][device]") {
  // More numbers than a block has threads, rounded so that many are equal.
  const std::int64_t layers = 3, n = GENERATE(255, 256, 257, 1000);
  const at::ScalarType type = GENERATE(at::kFloat, at::kDouble);
  const double step = GENERATE(0.0, 0.25);
  Tensor scores = normal_rows(layers, n, 1).to(type);
  if (step > 0) scores = (scores / step).round() * step;
  for (const double ratio : {0.1, 0.5, 0.9}) {
    WeightPlan plan;
    plan.name = "weight";
    plan.shape = {n};
    plan.layers = layers;
    plan.mask = MaskKind::learned;
    plan.sparsity_ratio = ratio;
    MaskedWeight here(plan, Placement::all_in(type)), device(plan, there(type));
    for (MaskedWeight* const weight : {&here, &device}) {
      weight->scores().copy_(scores);
      weight->values().fill_(1);
      weight->merge(0, false);
    }
    CHECK(device.masks().to(at::kCPU).equal(here.masks()));
  }
}
