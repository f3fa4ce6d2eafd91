#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"
#include "sweeps/trial_config.h"
#include "trainer/artifact/artifact.h"

namespace petlab::trainer {

/// A tensor of a module in another library's shapes.
struct LayerTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

/// A task's head: out_proj(tanh(dense(first token))).
struct LayeredHead {
  std::string task;
  std::vector<std::string> labels;       // in the order of the outputs; none: a score
  LayerTensor dense_weight, dense_bias;  // (d_model, d_model), (d_model)
  LayerTensor out_weight, out_bias;      // (outputs, d_model), (outputs)
  std::int64_t outputs() const { return out_weight.shape.at(0); }
};

/// A trained module as other libraries keep one: weights of its own in each layer, nothing masked.
struct LayeredModule {
  metrics::ModuleFamily family = metrics::ModuleFamily::adapter;
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t size = 0;  // bottleneck, rank or prefix length
  double alpha = 0;       // LoRA: its update is scaled by alpha / size
  /// By the names that an artifact gives them ("down.weight"): (layers, …). layer_weights() has the
  /// shape of one layer's.
  std::map<std::string, LayerTensor, std::less<>> weights;
  LayeredHead head;
};

/// A weight of a family of modules and its shape in one layer.
struct LayerWeight {
  std::string_view name;
  std::vector<std::int64_t> shape;
};
std::vector<LayerWeight> layer_weights(metrics::ModuleFamily family, std::int64_t d_model,
                                       std::int64_t size);

/// The artifact's module for one of its tasks: prototype ⊙ mask in each layer (the task's mask
/// joined to the layer's by module.combine), and that task's head. `config` is the artifact's
/// configuration; an empty
/// `task` means its only one. Throws std::invalid_argument for a task that it does not have or no
/// task where it has several, Error for a module without layers of its own (full fine-tuning, head
/// only, hypernetwork), naming the field in which artifact.module and `config` differ, and naming
/// the tensor that is missing or misshapen.
LayeredModule layered_module(const Artifact& artifact, const sweeps::TrialConfig& config,
                             const std::string& task);

/// The opposite: an artifact of a module that shares and masks nothing. Its trial, numerics and
/// backbone digest are empty; `backbone` and `max_tokens` go into its configuration.
Artifact unshared_artifact(const LayeredModule& module, const std::string& backbone,
                           std::int64_t max_tokens);

}  // namespace petlab::trainer
