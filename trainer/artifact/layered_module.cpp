#include "trainer/artifact/layered_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "sweeps/backbone.h"
#include "sweeps/catalog.h"
#include "sweeps/fields.h"
#include "trainer/files/error.h"
#include "trainer/files/tensor_view.h"
#include "trainer/modules/layer_weights.h"

namespace petlab::trainer {
namespace {

using Shape = std::vector<std::int64_t>;

template <typename Stored>
const Stored* find(const std::vector<Stored>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Stored& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void require_shape(std::string_view name, const Shape& found, const Shape& wanted) {
  if (found == wanted) return;
  throw Error(fmt::format("the artifact's tensor {} has the shape {}, must be {}", name,
                          shape_text(found), shape_text(wanted)));
}

Shape with_front(std::int64_t front, const Shape& shape) {
  Shape all{front};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

/// Merges a weight of an artifact into a separate weight for each layer.
class Merger {
 public:
  Merger(const Artifact& artifact, metrics::MaskCombination combine, std::size_t task)
      : artifact_(artifact), storage_(*artifact.module), combine_(combine), task_(task) {}

  LayerTensor merge(const LayerWeight& weight) const {
    const Shape wanted = with_front(storage_.layers, weight.shape);
    if (const auto* const sparse = find(artifact_.sparse, weight.name)) {
      require_shape(weight.name, sparse->shape, wanted);
      return {std::string(weight.name), wanted, sparse->values};
    }
    const auto* const dense = find(artifact_.values, weight.name);
    if (dense == nullptr) throw Error(fmt::format("the artifact has no tensor {}", weight.name));
    require_shape(weight.name, dense->shape, storage_.share ? weight.shape : wanted);
    LayerTensor merged{std::string(weight.name), wanted, {}};
    merged.values.reserve(static_cast<std::size_t>(elements(wanted)));
    for (std::int64_t l = 0; l < (storage_.share ? storage_.layers : 1); ++l) {
      merged.values.insert(merged.values.end(), dense->values.begin(), dense->values.end());
    }
    apply_masks(weight, merged);
    return merged;
  }

 private:
  void apply_masks(const LayerWeight& weight, LayerTensor& merged) const {
    const std::string name(weight.name);
    const auto* const layers = find(artifact_.masks, name + ".mask");
    const auto* const tasks = find(artifact_.masks, name + ".task_mask");
    if (layers == nullptr) return;
    require_shape(layers->name, layers->shape, merged.shape);
    if (tasks == nullptr) {
      for (std::size_t i = 0; i < merged.values.size(); ++i) {
        merged.values[i] *= static_cast<float>(layers->mask[i]);
      }
      return;
    }
    require_shape(tasks->name, tasks->shape, with_front(storage_.tasks, weight.shape));
    const auto n = static_cast<std::size_t>(elements(weight.shape));
    const auto task = std::span(tasks->mask).subspan(task_ * n, n);
    for (std::size_t i = 0; i < merged.values.size(); ++i) {
      merged.values[i] *= static_cast<float>(combined(layers->mask[i], task[i % n]));
    }
  }

  /// Combines a layer's mask element with a task's, as in MaskedWeight: 0, 1, or 2 (add).
  int combined(int layer, int task) const {
    switch (combine_) {
      case metrics::MaskCombination::or_:
        return layer | task;
      case metrics::MaskCombination::and_:
        return layer & task;
      case metrics::MaskCombination::add:
        return layer + task;
    }
    throw std::logic_error("a combination without a formula");
  }

  const Artifact& artifact_;
  const metrics::ModuleStorage& storage_;
  metrics::MaskCombination combine_;
  std::size_t task_;
};

std::size_t number_of_task(const sweeps::TrialConfig& config, const std::string& task) {
  if (task.empty() && config.tasks.size() == 1) return 0;
  const auto found = std::find(config.tasks.begin(), config.tasks.end(), task);
  if (found != config.tasks.end()) {
    return static_cast<std::size_t>(found - config.tasks.begin());
  }
  throw std::invalid_argument(
      task.empty() ? fmt::format("the artifact has {} tasks: name one of {} with --task",
                                 config.tasks.size(), fmt::join(config.tasks, ", "))
                   : fmt::format("--task is {}, must be a task of the artifact: {}", task,
                                 fmt::join(config.tasks, ", ")));
}

LayerTensor head_tensor(const Artifact& artifact, const std::string& task, const std::string& part,
                        const Shape& shape) {
  const std::string name = task + "." + part;
  const auto* const found = find(artifact.head, name);
  if (found == nullptr) throw Error(fmt::format("the artifact has no tensor {}", name));
  require_shape(name, found->shape, shape);
  return {name, shape, {found->values.begin(), found->values.end()}};
}

/// An artifact describes its module twice, directly and in its configuration. Both must agree.
void require_matching_config(const metrics::ModuleStorage& stored,
                             const sweeps::TrialConfig& config) {
  const auto require = [](std::string_view field, const auto& found, const auto& wanted) {
    if (found == wanted) return;
    throw Error(fmt::format("the artifact's module.{} is {}, must be {}, as its config has it",
                            field, found, wanted));
  };
  require("family", stored.formula->kind, config.module.kind);
  const metrics::ModuleStorage wanted = sweeps::module_storage(config, {});
  require("size", stored.size, wanted.size);
  require("share", stored.share, wanted.share);
  require("mask", metrics::to_string(stored.mask), metrics::to_string(wanted.mask));
  require("tasks", stored.tasks, wanted.tasks);
}

}  // namespace

LayeredModule layered_module(const Artifact& artifact, const sweeps::TrialConfig& config,
                             const std::string& task) {
  if (!artifact.module) {
    throw Error(
        fmt::format("module.kind is {}, which has no weights of its own", config.module.kind));
  }
  require_matching_config(*artifact.module, config);
  if (artifact.module->formula->per_model) {
    throw Error(
        fmt::format("module.kind is {}, whose hypernetwork generates the layers' weights: other "
                    "libraries store the layers' weights themselves",
                    config.module.kind));
  }
  const std::size_t number = number_of_task(config, task);
  LayeredModule module;
  module.kind = artifact.module->formula->kind;
  module.d_model = artifact.module->d_model;
  module.layers = artifact.module->layers;
  module.size = artifact.module->size;
  module.alpha = config.module.alpha;
  const Merger merger(artifact, config.module.combine, number);
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    module.weights.emplace(weight.name, merger.merge(weight));
  }
  LayeredHead& head = module.head;
  head.task = config.tasks[number];
  const auto labels = artifact.labels.find(head.task);
  if (labels == artifact.labels.end()) {
    throw Error(fmt::format("the artifact has no labels of task {}", head.task));
  }
  head.labels = labels->second;
  const std::int64_t d = module.d_model;
  const std::int64_t outputs = head.labels.empty() ? 1 : std::ssize(head.labels);
  head.dense_weight = head_tensor(artifact, head.task, "dense.weight", {d, d});
  head.dense_bias = head_tensor(artifact, head.task, "dense.bias", {d});
  head.out_weight = head_tensor(artifact, head.task, "out_proj.weight", {outputs, d});
  head.out_bias = head_tensor(artifact, head.task, "out_proj.bias", {outputs});
  return module;
}

Artifact unshared_artifact(const LayeredModule& module, const std::string& backbone,
                           std::int64_t max_tokens) {
  sweeps::TrialConfig config = sweeps::default_config(module.kind);
  config.backbone = backbone;
  config.tasks = {module.head.task};
  config.module.share = false;
  config.module.mask = metrics::MaskKind::none;
  const sweeps::ModuleRow& row = *sweeps::module_of(config);
  sweeps::find_field(row.size_field())->set(config, module.size);
  if (row.has_field("module.alpha")) config.module.alpha = module.alpha;
  config.data.max_tokens = max_tokens;
  Artifact artifact;
  artifact.config = sweeps::to_json(config).dump();
  artifact.module.emplace();
  artifact.module->formula = row.formula();
  artifact.module->d_model = module.d_model;
  artifact.module->layers = module.layers;
  artifact.module->size = module.size;
  artifact.labels[module.head.task] = module.head.labels;
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    const LayerTensor& tensor = module.weights.at(std::string(weight.name));
    artifact.values.push_back({std::string(weight.name), tensor.shape, tensor.values});
  }
  const auto add = [&](const std::string& part, const LayerTensor& tensor) {
    artifact.head.push_back({module.head.task + "." + part, tensor.shape, tensor.values});
  };
  add("dense.weight", module.head.dense_weight);
  add("dense.bias", module.head.dense_bias);
  add("out_proj.weight", module.head.out_weight);
  add("out_proj.bias", module.head.out_bias);
  return artifact;
}

}  // namespace petlab::trainer
