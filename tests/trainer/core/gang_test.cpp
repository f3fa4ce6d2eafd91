// Trials trained together get the same numbers as each trained alone.
#include "trainer/training/gang.h"

#include <functional>
#include <map>

#include "sweeps/catalog.h"
#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_text_world.h"
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
  std::exception_ptr failure;

  LoopObserver observer() {
    LoopObserver observer;
    observer.on_step = [this](std::int64_t, std::int64_t, double loss) { losses.push_back(loss); };
    observer.on_metric = [this](const protocol::Metric& metric) { metrics.push_back(metric); };
    observer.on_end = [this](const std::exception_ptr& why) { failure = why; };
    return observer;
  }
};

std::unique_ptr<TrainingTrial> training(const LoadedBackbone& backbone,
                                        const protocol::TrialFile& trial, LoopObserver observer) {
  return std::make_unique<TrainingTrial>(
      trial.config, load_tasks(trial.tasks, trial.config.data, trial.data_folders, backbone),
      backbone.pretrained(), std::move(observer));
}

/// Trains the trials together and returns the results of each.
std::vector<GangRun> train_gang(const LoadedBackbone& backbone,
                                const std::vector<protocol::TrialFile>& trials) {
  std::vector<GangRun> runs(trials.size());
  std::vector<std::unique_ptr<TrainingTrial>> gang;
  for (std::size_t k = 0; k < trials.size(); ++k) {
    gang.push_back(training(backbone, trials[k], runs[k].observer()));
  }
  TrainingLoop loop(std::move(gang));
  loop.run(std::atomic<bool>{false});
  for (std::size_t k = 0; k < trials.size(); ++k) {
    for (const auto& [name, tensor] : loop.tensors(k)) {
      runs[k].tensors.emplace(name, tensor.clone());
    }
  }
  return runs;
}

/// Three trials that differ in seed, rates, warm-up and clipping.
std::vector<protocol::TrialFile> gang_of(const protocol::TrialFile& first) {
  std::vector<protocol::TrialFile> all(3, first);
  all[1].config.seed = {43};
  all[1].config.training.learning_rate *= 0.5;
  all[1].config.training.mask_learning_rate *= 2;
  all[2].config.seed = {7};
  all[2].config.training.max_grad_norm = 0.01;
  all[2].config.training.warmup_ratio = 0.5;
  return all;
}

/// Lets four trials differ in all that may differ: sharing, masks, batches, epochs, sizes, lengths,
/// tasks, validations and losses.
std::vector<protocol::TrialFile> differing(std::vector<protocol::TrialFile> trials) {
  for (std::size_t k = 0; k < trials.size(); ++k) trials[k].config.seed = {40 + k};
  const auto mask = [&](std::size_t k, bool share, MaskKind kind) {
    sweeps::TrialConfig changed = trials[k].config;
    changed.module.share = share;
    changed.module.mask = kind;
    changed.module.sparsity_ratio = 0.3;
    if (sweeps::validate(changed, trials[k].tasks).empty()) trials[k].config = changed;
  };
  mask(0, true, MaskKind::learned);
  mask(1, true, MaskKind::random);
  mask(3, false, MaskKind::learned);
  trials[1].config.training.batch_size = 8;
  trials[1].config.training.gradient_accumulation = 3;
  trials[0].config.training.label_smoothing = 0.1;
  trials[0].tasks.push_back(trials[0].tasks.front());
  trials[0].tasks.back().name = "second";
  trials[0].config.tasks.push_back("second");
  trials[2].config.training.steps = 5;
  trials[2].config.training.evaluate_every = 2;
  trials[3].config.module.bottleneck = 7;
  trials[3].config.module.rank = 3;
  trials[3].config.data.max_tokens = 6;
  trials[3].tasks.front().name = "other";
  trials[3].config.tasks = {"other"};
  std::swap(trials[3].tasks.front().classes[0], trials[3].tasks.front().classes[1]);
  return trials;
}

void check_equal(const GangRun& found, const GangRun& alone, double loss_tolerance,
                 double tensor_tolerance) {
  REQUIRE(found.losses.size() == alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(found.losses[i] == Approx(alone.losses[i]).epsilon(loss_tolerance));
  }
  if (tensor_tolerance == 0) return;
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

/// Checks that the trials, trained together, equal each trained alone. Only the order of sums
/// differs, which hardly shows in float64. In float32, a sum's last bit can flip a mask bit in a
/// later step, so only losses are compared.
void check_gang(const std::vector<protocol::TrialFile>& trials) {
  for (const bool exact : {true, false}) {
    BackboneStore backbones;
    const auto backbone = backbones.get(trials.front().backbone_folder,
                                        exact ? Placement::all_in(at::kDouble) : Placement());
    const std::vector<GangRun> together = train_gang(*backbone, trials);
    for (std::size_t k = 0; k < trials.size(); ++k) {
      INFO("trial " << k << (exact ? " in float64" : " in float32"));
      CHECK(!together[k].failure);
      const GangRun alone = train_gang(*backbone, {trials[k]}).front();
      check_equal(together[k], alone, exact ? 1e-9 : 1e-3, exact ? 1e-7 : 0);
    }
  }
}

}  // namespace

TEST_CASE("trials trained together equal each trained alone, for every module", "[trainer]") {
  const TinyTextWorld text_world;
  std::map<std::string, int> kinds;
  for (const bool text : {false, true}) {
    for (const sweeps::ModuleRow& row : sweeps::modules()) {
      if (row.kind == "full_finetuning" || (text && row.kind == "head_only")) continue;
      if (!text && row.declared->backbones == sweeps::ModuleBackbones::text_to_text) continue;
      for (const bool share : {false, true}) {
        for (const MaskKind mask : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
          const std::string kind(row.kind);
          protocol::TrialFile trial =
              text ? text_world.trial(kind) : text_world.TinyWorld::trial(kind);
          trial.config.module.share = share;
          trial.config.module.mask = mask;
          trial.config.module.sparsity_ratio = 0.3;
          trial.config.training.epochs = 2;
          if (!sweeps::validate(trial.config, trial.tasks).empty()) continue;
          const bool fixed = kind == "hyperformer++";
          if (text && !fixed && (!share || mask != MaskKind::learned)) continue;
          INFO(row.kind << ", share " << share << ", mask " << metrics::to_string(mask));
          ++kinds[kind + (text ? " of a T5" : "")];
          check_gang(gang_of(trial));
        }
      }
    }
  }
  CHECK((kinds == std::map<std::string, int>{{"adapter", 6},
                                             {"adapter of a T5", 1},
                                             {"head_only", 1},
                                             {"hyperformer++ of a T5", 1},
                                             {"lora", 6},
                                             {"lora of a T5", 1},
                                             {"prefix", 6},
                                             {"prefix of a T5", 1}}));
}

TEST_CASE("four trials of any kinds, tasks, batch sizes and lengths are trained in one gang",
          "[trainer]") {
  const TinyTextWorld world;
  using Four = std::vector<const char*>;
  // A backbone runs once with prefixes of one length only, so these are among themselves.
  const Four prefixes(4, "prefix");
  const auto check = [](const Four& kinds,
                        const std::function<protocol::TrialFile(const char*)>& of) {
    INFO("first is " << kinds.front());
    std::vector<protocol::TrialFile> trials;
    for (const char* const kind : kinds) trials.push_back(of(kind));
    check_gang(differing(std::move(trials)));
  };
  const auto encoder = [&](const char* kind) { return world.TinyWorld::trial(kind); };
  const auto modern = [&](const char* kind) {
    protocol::TrialFile trial = world.TinyWorld::trial(kind);
    trial.config.backbone = "./tiny-modernbert";
    trial.backbone_folder = world.folder.path() / "tiny-modernbert";
    return trial;
  };
  const auto text = [&](const char* kind) { return world.trial(kind); };
  for (const Four& kinds : {Four{"adapter", "lora", "head_only", "adapter"},
                            Four{"lora", "head_only", "adapter", "lora"}, prefixes}) {
    check(kinds, encoder);
    check(kinds, modern);
  }
  for (const Four& kinds : {Four{"adapter", "lora", "hyperformer++", "adapter"},
                            Four{"hyperformer++", "adapter", "lora", "lora"}, prefixes}) {
    check(kinds, text);
  }
}

TEST_CASE("a trial that fails leaves its gang, and the others continue", "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny", Placement::all_in(at::kDouble));
  std::vector<protocol::TrialFile> trials = gang_of(world.trial("adapter"));
  trials[1].config.training.learning_rate = 1e300;
  trials[1].config.training.max_grad_norm = 0;
  const std::vector<GangRun> runs = train_gang(*backbone, trials);
  REQUIRE(runs[1].failure);
  CHECK_THROWS_WITH(std::rethrow_exception(runs[1].failure),
                    Catch::StartsWith("the loss is not finite at step "));
  for (const std::size_t k : {0U, 2U}) {
    CHECK(!runs[k].failure);
    check_equal(runs[k], train_gang(*backbone, {trials[k]}).front(), 1e-9, 1e-7);
  }
}

TEST_CASE("among four kinds one trial fails, one is stopped, and the others equal each alone",
          "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny", Placement::all_in(at::kDouble));
  for (std::size_t first = 0; first < 4; ++first) {
    std::vector<protocol::TrialFile> trials;
    for (const char* const kind : {"adapter", "lora", "head_only", "adapter"}) {
      trials.push_back(world.trial(kind));
    }
    trials = differing(std::move(trials));
    const std::size_t failing = first;
    const std::size_t stopped = (first + 1) % 4;
    INFO("trial " << failing << " fails, trial " << stopped << " is stopped");
    trials[failing].config.training.learning_rate = 1e300;
    trials[failing].config.training.max_grad_norm = 0;
    std::vector<GangRun> runs(trials.size());
    std::vector<std::unique_ptr<TrainingTrial>> gang;
    for (std::size_t k = 0; k < trials.size(); ++k) {
      LoopObserver observer = runs[k].observer();
      if (k == stopped) observer.is_to_stop = [&runs, k] { return !runs[k].losses.empty(); };
      gang.push_back(training(*backbone, trials[k], std::move(observer)));
    }
    TrainingLoop loop(std::move(gang));
    loop.run(std::atomic<bool>{false});
    REQUIRE(runs[failing].failure);
    CHECK_THROWS_WITH(std::rethrow_exception(runs[failing].failure),
                      Catch::StartsWith("the loss is not finite at step "));
    REQUIRE(runs[stopped].failure);
    CHECK_THROWS_AS(std::rethrow_exception(runs[stopped].failure), Interrupted);
    std::vector<std::unique_ptr<TrainingTrial>> rest;
    rest.push_back(training(*backbone, trials[stopped], runs[stopped].observer()));
    TrainingLoop resumed(std::move(rest));
    resumed.restore(loop.state(stopped), loop.tensors(stopped));
    resumed.run(std::atomic<bool>{false});
    for (std::size_t k = 0; k < trials.size(); ++k) {
      if (k == failing) continue;
      INFO("trial " << k);
      CHECK(!runs[k].failure);
      const GangRun alone = train_gang(*backbone, {trials[k]}).front();
      REQUIRE(runs[k].losses.size() == alone.losses.size());
      for (std::size_t step = 0; step < alone.losses.size(); ++step) {
        CHECK(runs[k].losses[step] == Approx(alone.losses[step]).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("a stopped trial leaves its gang and resumes alone, and the others continue",
          "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny", Placement::all_in(at::kDouble));
  const std::vector<protocol::TrialFile> trials = gang_of(world.trial("adapter"));
  std::vector<GangRun> runs(trials.size());
  std::vector<std::unique_ptr<TrainingTrial>> gang;
  for (std::size_t k = 0; k < trials.size(); ++k) {
    LoopObserver observer = runs[k].observer();
    if (k == 1) observer.is_to_stop = [&runs] { return runs[1].losses.size() == 2; };
    gang.push_back(training(*backbone, trials[k], std::move(observer)));
  }
  TrainingLoop loop(std::move(gang));
  loop.run(std::atomic<bool>{false});
  REQUIRE(runs[1].failure);
  CHECK_THROWS_AS(std::rethrow_exception(runs[1].failure), Interrupted);
  CHECK(loop.state(1).step == 2);
  for (std::size_t k = 0; k < trials.size(); ++k) {
    if (k == 1) {
      std::vector<std::unique_ptr<TrainingTrial>> rest;
      rest.push_back(training(*backbone, trials[1], runs[1].observer()));
      TrainingLoop resumed(std::move(rest));
      resumed.restore(loop.state(1), loop.tensors(1));
      resumed.run(std::atomic<bool>{false});
      CHECK(!runs[1].failure);
    }
    const GangRun alone = train_gang(*backbone, {trials[k]}).front();
    REQUIRE(runs[k].losses.size() == alone.losses.size());
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      CHECK(runs[k].losses[step] == Approx(alone.losses[step]).epsilon(1e-9));
    }
  }
}

TEST_CASE("trials stopped together resume together from their checkpoints", "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny");
  protocol::TrialFile trial = world.trial("lora");
  trial.config.module.share = true;
  trial.config.module.mask = MaskKind::learned;
  std::vector<protocol::TrialFile> trials = gang_of(trial);
  trials[2].config.training.epochs = 1;
  const auto loop_of = [&](std::vector<GangRun>& runs, std::atomic<bool>* stop, std::size_t after) {
    std::vector<std::unique_ptr<TrainingTrial>> gang;
    for (std::size_t k = 0; k < trials.size(); ++k) {
      LoopObserver observer = runs[k].observer();
      observer.on_step = [&runs, k, stop, after](std::int64_t, std::int64_t, double loss) {
        runs[k].losses.push_back(loss);
        if (stop != nullptr && k == 0 && runs[k].losses.size() == after) *stop = true;
      };
      gang.push_back(training(*backbone, trials[k], std::move(observer)));
    }
    return TrainingLoop(std::move(gang));
  };
  std::vector<GangRun> whole(trials.size());
  loop_of(whole, nullptr, 0).run(std::atomic<bool>{false});
  // Trial 2 is trained after 3 steps of 9: it has left the gang when the others stop at the fifth.
  for (const std::size_t after : {2U, 5U}) {
    std::vector<GangRun> parts(trials.size());
    std::atomic<bool> stop{false};
    TrainingLoop first = loop_of(parts, &stop, after);
    CHECK_THROWS_AS(first.run(stop), Interrupted);
    std::vector<GangRun> rest = parts;
    for (GangRun& run : rest) run.metrics.clear();
    TrainingLoop second = loop_of(rest, nullptr, 0);
    for (std::size_t k = 0; k < trials.size(); ++k) {
      second.restore(first.state(k), first.tensors(k), k);
    }
    second.run(std::atomic<bool>{false});
    for (std::size_t k = 0; k < trials.size(); ++k) {
      CHECK((rest[k].losses == whole[k].losses));
    }
  }
  // Checkpoints of different steps cannot be trained together.
  std::vector<GangRun> parts(trials.size());
  std::atomic<bool> stop{false};
  TrainingLoop first = loop_of(parts, &stop, 2);
  CHECK_THROWS_AS(first.run(stop), Interrupted);
  TrainingLoop third = loop_of(parts, nullptr, 0);
  third.restore(first.state(1), first.tensors(1), 1);
  CHECK_THROWS_WITH(third.run(std::atomic<bool>{false}),
                    "the trials cannot be trained together: they are at the steps 0 and 2");
}

TEST_CASE("trials that cannot share a pass are refused with the field in which they differ",
          "[trainer]") {
  const TinyWorld world;
  const sweeps::TrialConfig config = world.trial("adapter").config;
  const auto why = [&](const std::function<void(sweeps::TrialConfig&)>& change) {
    sweeps::TrialConfig other = config;
    change(other);
    return why_not_in_one_gang(config, other).value_or("");
  };
  CHECK(why([](auto& c) { c.module.kind = "lora"; }).empty());
  CHECK(why([](auto& c) { c.training.dropout = 0.5; }) ==
        "training.dropout is -1.000000 and 0.500000");
  CHECK(why([](auto& c) { c.training.compute = sweeps::ComputeType::bf16; }) ==
        "training.compute is float32 and bf16");
  CHECK(why([](auto& c) { c.backbone = "./other"; }) == "backbone is ./tiny and ./other");
  CHECK(why([](auto& c) { c.module.kind = "full_finetuning"; }) ==
        "module.kind is full_finetuning, which shares no backbone");
  CHECK(why([](auto& c) {
          c.module.kind = "prefix";
          c.module.prefix_length = 3;
        }) == "the length of the prefix is 0 and 3");

  BackboneStore backbones;
  const auto backbone = backbones.get(world.folder.path() / "tiny");
  std::vector<protocol::TrialFile> trials(2, world.trial("adapter"));
  trials[1].config.training.dropout = 0.5;
  CHECK_THROWS_WITH(
      train_gang(*backbone, trials),
      "the trials cannot be trained together: training.dropout is -1.000000 and 0.500000");
}
