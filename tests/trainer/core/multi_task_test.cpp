// Trials of several tasks: supported modules, stored sizes, and the parameters each step changes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "metrics/storage.h"
#include "protocol/artifact_format.h"
#include "sweeps/backbone.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/training/optimizer.h"

using namespace petlab;
using namespace petlab::trainer;
using metrics::MaskKind;
using petlab::testing::events_of;
using petlab::testing::read_events;
using petlab::testing::TinyTextWorld;

namespace {

/// A trial of `count` tasks with the same 40 sentences.
protocol::TrialFile many_tasks_trial(const TinyTextWorld& world, const std::string& kind,
                                     int count) {
  const bool writes =
      sweeps::find_module(kind)->declared->backbones == sweeps::ModuleBackbones::text_to_text;
  protocol::TrialFile trial = writes ? world.trial(kind) : world.TinyWorld::trial(kind);
  if (count == 1) return trial;
  trial.tasks.clear();
  trial.config.tasks.clear();
  for (int t = 0; t < count; ++t) {
    trial.tasks.push_back(world.task());
    trial.tasks.back().name = "task-" + std::to_string(t);
    trial.config.tasks.push_back(trial.tasks.back().name);
  }
  return trial;
}

struct World {
  TinyTextWorld tiny;
  BackboneStore backbones;
  std::shared_ptr<const LoadedBackbone> backbone = backbones.get(tiny.folder.path() / "tiny");
  std::shared_ptr<const LoadedBackbone> t5 = backbones.get(tiny.folder.path() / "tiny-t5");

  const LoadedBackbone& backbone_of(const protocol::TrialFile& trial) const {
    return trial.config.backbone == "./tiny-t5" ? *t5 : *backbone;
  }
  std::vector<TaskRun> tasks(const protocol::TrialFile& trial) const {
    return load_tasks(trial.tasks, trial.config.data, trial.data_folders, backbone_of(trial));
  }
};

/// Copies of the current parameters, by name.
std::map<std::string, Tensor> values_of(TrainingLoop& loop) {
  std::map<std::string, Tensor> values;
  for (const Parameter& parameter : loop.model().parameters()) {
    values.emplace(parameter.name, parameter.value.detach().clone());
  }
  return values;
}

bool same(const Tensor& a, const Tensor& b) { return at::equal(a, b); }

}  // namespace

TEST_CASE(
    "every module that can be configured trains, stores its formula's bits and predicts from "
    "its artifact",
    "[trainer]") {
  World world;
  std::map<std::string, int> trained;
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    for (const bool share : {false, true}) {
      for (const MaskKind mask : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
        for (const int count : {1, 3}) {
          protocol::TrialFile trial = many_tasks_trial(world.tiny, std::string(row.kind), count);
          trial.config.module.share = share;
          trial.config.module.mask = mask;
          trial.config.module.sparsity_ratio = 0.3;
          trial.config.training.epochs = 1;
          trial.config.training.batch_size = 40;
          if (!sweeps::validate(trial.config, trial.tasks).empty()) continue;
          INFO(row.kind << ", share " << share << ", mask " << metrics::to_string(mask) << ", "
                        << count << " tasks");
          ++trained[std::string(row.kind)];
          const auto attempt =
              world.tiny.attempt(std::string(row.kind) + std::to_string(share) +
                                     std::string(metrics::to_string(mask)) + std::to_string(count),
                                 trial);
          const std::atomic<bool> stop{false};
          std::ostringstream log;
          const auto outcome = train_gang(
              {attempt}, world.backbones, stop, [] { return 1.0; }, log);
          INFO(log.str());
          REQUIRE(outcome == TrialOutcome::finished);
          const auto events = read_events(attempt);
          const auto finished = events_of<protocol::Finished>(events).front();
          const auto storage = protocol::read_artifact_storage(attempt / "artifact.petl");
          CHECK(storage.module.has_value() == (row.formula() != nullptr));
          CHECK(storage.bls_bits == finished.bls_bits);
          CHECK(static_cast<std::int64_t>(storage.stored_bits()) == finished.stored_bits);
          if (row.formula() != nullptr) {
            sweeps::BackboneShape shape;
            shape.d_model = 16;
            shape.encoder_layers = 2;
            const bool writes = row.declared->backbones == sweeps::ModuleBackbones::text_to_text;
            shape.decoder_layers = writes ? 2 : 0;
            const metrics::ModuleStorage formula = sweeps::module_storage(trial.config, shape);
            CHECK(finished.stored_bits == metrics::stored_bits(formula));
            CHECK(finished.bls_bits == metrics::bls_bits(formula));
            CHECK(static_cast<double>(storage.masks_bits) == metrics::bls_parts(formula).masks);
          }
          const Artifact artifact = read_artifact(attempt / "artifact.petl");
          for (const ArtifactMask& stored : artifact.masks) {
            const std::int64_t n =
                sweeps::module_storage(trial.config, {}).size * 16 * (row.kind == "prefix" ? 2 : 1);
            const std::int64_t ones = n - metrics::zeros_in_mask(0.3, n);
            INFO(stored.name);
            for (std::int64_t i = 0; i < stored.shape.front(); ++i) {
              CHECK(std::count(stored.mask.begin() + i * n, stored.mask.begin() + (i + 1) * n, 1) ==
                    ones);
            }
          }
          TrialModel model = load_model(artifact, trial.config, trial.tasks,
                                        world.backbone_of(trial).pretrained());
          const std::vector<TaskRun> runs = world.tasks(trial);
          std::vector<std::optional<double>> recorded, predicted;
          for (const protocol::Metric& metric : events_of<protocol::Metric>(events)) {
            if (metric.split == "test") recorded.push_back(metric.value);
          }
          for (std::size_t t = 0; t < runs.size(); ++t) {
            model.merge(t);
            const Scores scores =
                model.objective(t).score(runs[t].test, predict(model, t, runs[t].test, stop));
            for (const auto& [name, value] : scores.metrics) predicted.push_back(value);
          }
          CHECK((predicted == recorded));
        }
      }
    }
  }
  // Masks without a shared prototype are refused: they have no storage formula for several tasks.
  CHECK((trained == std::map<std::string, int>{{"adapter", 10},
                                               {"full_finetuning", 2},
                                               {"head_only", 2},
                                               {"hyperformer++", 2},
                                               {"lora", 10},
                                               {"prefix", 10}}));
}

TEST_CASE("random task masks are drawn independently of each other and of the layers' masks",
          "[trainer]") {
  World world;
  protocol::TrialFile trial = many_tasks_trial(world.tiny, "adapter", 3);
  trial.config.module.share = true;
  trial.config.module.mask = MaskKind::random;
  TrialModel model(trial.config, trial.tasks, *world.backbone->model);
  trial.config.tasks.resize(1);
  TrialModel alone(trial.config, {trial.tasks.front()}, *world.backbone->model);
  for (std::size_t i : {0U, 2U}) {  // down.weight, up.weight
    MaskedWeight& weight = *model.module().weights()[i];
    const Tensor& layers = weight.masks();
    const Tensor& tasks = weight.task_masks();
    REQUIRE(tasks.defined());
    CHECK(tasks.size(0) == 3);
    CHECK(!same(tasks[0], tasks[1]));
    CHECK(!same(tasks[1], tasks[2]));
    CHECK(!same(tasks[0], layers[0]));
    CHECK(same(layers, alone.module().weights()[i]->masks()));
    for (const std::size_t task : {0U, 2U}) {
      model.merge(task);
      const Tensor either = at::max(layers[1], tasks[static_cast<std::int64_t>(task)]);
      CHECK(same(weight.layer(1), weight.values()[0] * either));
    }
  }
}

TEST_CASE("an exported module has the weights that predict each task, for every mask combination",
          "[trainer]") {
  World world;
  for (const char* const kind : {"adapter", "lora", "prefix"}) {
    for (const auto combine : {metrics::MaskCombination::or_, metrics::MaskCombination::and_,
                               metrics::MaskCombination::add}) {
      protocol::TrialFile trial = many_tasks_trial(world.tiny, kind, 2);
      trial.config.module.share = true;
      trial.config.module.mask = MaskKind::random;
      trial.config.module.combine = combine;
      TrialModel model(trial.config, trial.tasks, *world.backbone->model);
      for (MaskedWeight* const weight : model.module().weights()) weight->values().normal_();
      model.merge(0);  // computes the prefix from its MLP
      Artifact artifact;
      store_model(model, trial.config, trial.tasks, artifact);
      for (std::size_t task = 0; task < 2; ++task) {
        model.merge(task);
        const LayeredModule exported =
            layered_module(artifact, trial.config, trial.config.tasks[task]);
        std::size_t compared = 0;
        for (MaskedWeight* const weight : model.module().weights()) {
          if (!exported.weights.contains(weight->plan().name))
            continue;  // part of the prefix's MLP
          ++compared;
          const LayerTensor& found = exported.weights.find(weight->plan().name)->second;
          const Tensor layers = at::tensor(found.values).view(found.shape);
          for (std::int64_t l = 0; l < found.shape.front(); ++l) {
            INFO(kind << " " << metrics::to_string(combine) << " " << found.name << " " << l);
            CHECK(same(layers[l], weight->layer(l)));
          }
        }
        CHECK(compared == exported.weights.size());
      }
    }
  }
}

TEST_CASE("a task's parameters follow torch's AdamW from the task's first batch", "[trainer]") {
  // The task of each step.
  const std::vector<std::size_t> drawn{1, 1, 1, 0, 1, 1};
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto parameter = [&](const std::string& name, std::vector<std::int64_t> shape) {
    return Parameter{name, at::ones(shape, options), at::zeros(shape, options)};
  };
  Parameter head0 = parameter("head.0", {2});
  head0.task = 0;
  Parameter head1 = parameter("head.1", {2});
  head1.task = 1;
  Parameter scores = parameter("task_scores", {2, 2});
  scores.by_task = true;
  scores.rate = Rate::scores;
  Parameter shared = parameter("shared", {2});
  AdamW optimizer({head0, head1, scores, shared}, {});
  optimizer.set_first_steps({3, 0});

  // torch's AdamW for a parameter without a gradient before step `first`.
  const auto by_hand = [&](std::size_t steps, std::size_t first, double rate,
                           const std::function<double(std::size_t)>& gradient) {
    double value = 1, m = 0, v = 0;
    for (std::size_t s = first; s < steps; ++s) {
      const double t = static_cast<double>(s - first + 1);
      const double g = gradient(s);
      value *= 1 - rate * 0.1;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      value -=
          rate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    }
    return value;
  };
  const auto gradient_at = [](std::size_t s) { return 0.5 + 0.25 * static_cast<double>(s); };
  const auto of_task = [&](std::size_t task) {
    return [&, task](std::size_t s) { return drawn[s] == task ? gradient_at(s) : 0.0; };
  };
  for (std::size_t s = 0; s < drawn.size(); ++s) {
    optimizer.zero_gradients();
    (drawn[s] == 0 ? head0 : head1).gradient.fill_(gradient_at(s));
    scores.gradient.select(0, static_cast<std::int64_t>(drawn[s])).fill_(gradient_at(s));
    shared.gradient.fill_(gradient_at(s));
    optimizer.step({1e-2, 3e-2});
    INFO("after step " << s + 1);
    const auto last = [](const Tensor& tensor) { return tensor.flatten()[-1].item<double>(); };
    CHECK(last(head0.value) == Approx(by_hand(s + 1, 3, 1e-2, of_task(0))).epsilon(1e-12));
    CHECK(last(head1.value) == Approx(by_hand(s + 1, 0, 1e-2, of_task(1))).epsilon(1e-12));
    CHECK(last(scores.value[0]) == Approx(by_hand(s + 1, 3, 3e-2, of_task(0))).epsilon(1e-12));
    CHECK(last(scores.value[1]) == Approx(by_hand(s + 1, 0, 3e-2, of_task(1))).epsilon(1e-12));
    CHECK(last(shared.value) == Approx(by_hand(s + 1, 0, 1e-2, gradient_at)).epsilon(1e-12));
    if (s < 3) CHECK(same(head0.value, at::ones({2}, options)));
  }
}

TEST_CASE("a task's parameters do not change before its first batch", "[trainer]") {
  World world;
  protocol::TrialFile trial = many_tasks_trial(world.tiny, "adapter", 2);
  trial.config.module.share = true;
  trial.config.module.mask = MaskKind::learned;
  trial.config.training.warmup_ratio = 0;  // with warm-up, the first step would change nothing
  std::atomic<bool> stop{false};
  LoopObserver observer;
  // Stops after both tasks have had a batch.
  std::map<std::string, Tensor> before, after;
  std::set<std::size_t> begun;
  TrainingLoop* running = nullptr;
  observer.on_step = [&](std::int64_t step, std::int64_t, double) {
    after = values_of(*running);
    std::set<std::size_t> moved;
    for (std::size_t t = 0; t < 2; ++t) {
      const std::string head = "head." + std::to_string(t) + ".";
      const auto slice = static_cast<std::int64_t>(t);
      const bool head_moved =
          !same(after.at(head + "dense.weight"), before.at(head + "dense.weight"));
      const bool scores_moved = !same(after.at("down.weight.task_scores").select(0, slice),
                                      before.at("down.weight.task_scores").select(0, slice));
      CHECK(head_moved == scores_moved);
      if (head_moved) moved.insert(t);
    }
    if (step == 1) CHECK(moved.size() == 1);
    CHECK(std::includes(moved.begin(), moved.end(), begun.begin(), begun.end()));
    begun = moved;
    if (begun.size() == 2) stop = true;
  };
  TrainingLoop loop(trial.config, world.tasks(trial), *world.backbone->model, observer);
  running = &loop;
  before = values_of(loop);
  CHECK_THROWS_AS(loop.run(stop), Interrupted);
  CHECK(begun.size() == 2);
}

TEST_CASE("the best epoch has the largest mean over all metrics of all tasks", "[trainer]") {
  World world;
  protocol::TrialFile trial = many_tasks_trial(world.tiny, "adapter", 2);
  trial.tasks[0].select_by = {"accuracy", "f1"};  // the other task: accuracy alone
  trial.config.training.epochs = 12;
  trial.config.training.learning_rate = 5e-2;            // large, so that values go up and down
  std::map<std::int64_t, std::vector<double>> selected;  // by step
  LoopObserver observer;
  observer.on_metric = [&](const protocol::Metric& metric) {
    if (metric.split != "validation") return;
    if (metric.task == "task-0" || metric.name == "accuracy") {
      selected[metric.step].push_back(metric.value.value());
    }
  };
  TrainingLoop loop(trial.config, world.tasks(trial), *world.backbone->model, observer);
  loop.run(false);
  std::optional<std::int64_t> best_step;
  double best = 0;
  for (const auto& [step, values] : selected) {
    REQUIRE(values.size() == 3);
    const double mean = (values[0] + values[1] + values[2]) / 3;
    if (best_step && mean <= best) continue;
    best_step = step;
    best = mean;
  }
  CHECK(loop.state().best_step == best_step);
  CHECK(loop.state().best_value.value() == Approx(best).epsilon(1e-15));
}

TEST_CASE("each batch has one task's examples, and each pass sees every example once",
          "[trainer]") {
  World world;
  protocol::TrialFile trial = many_tasks_trial(world.tiny, "adapter", 2);
  // The parameters hardly change, so a loss identifies the task and examples of its batch.
  trial.config.training.learning_rate = 1e-30;
  trial.config.training.dropout = 0;
  trial.config.training.epochs = 4;
  std::vector<double> losses;
  LoopObserver observer;
  observer.on_step = [&](std::int64_t, std::int64_t, double loss) { losses.push_back(loss); };
  TrainingLoop loop(trial.config, world.tasks(trial), *world.backbone->model, observer);
  loop.run(false);
  const std::vector<TaskRun> runs = world.tasks(trial);
  const at::NoGradGuard no_grad;
  TrialModel model(trial.config, trial.tasks, *world.backbone->model);
  const auto expected = [&](std::size_t task, std::int64_t batch) {
    const std::int64_t size = trial.config.training.batch_size;
    std::vector<std::int64_t> examples;
    for (std::int64_t i = batch * size; i < (batch + 1) * size; ++i) {
      const auto order = epoch_order(42, task, static_cast<std::uint64_t>(i / 40), 40);
      examples.push_back(order[static_cast<std::size_t>(i % 40)]);
    }
    model.merge(task);
    const PackedBatch packed = pack(runs[task].train, examples);
    const Objective& objective = model.objective(task);
    const ModelPass pass = model.pass(nullptr);
    const Tensor loss = objective.loss(pass, objective.states(pass, packed), packed);
    return loss.item<double>() / static_cast<double>(size);
  };
  std::vector<std::int64_t> seen(2, 0);
  for (const double loss : losses) {
    std::vector<std::size_t> fits;
    for (std::size_t t = 0; t < 2; ++t) {
      if (std::abs(expected(t, seen[t]) - loss) < 1e-6) fits.push_back(t);
    }
    REQUIRE(fits.size() == 1);
    ++seen[fits.front()];
  }
  CHECK(losses.size() == 28);  // 4 passes of ceil(80 / 12)
  CHECK(seen[0] > 5);
  CHECK(seen[1] > 5);
}
