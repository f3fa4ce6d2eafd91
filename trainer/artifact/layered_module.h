#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/artifact/artifact.h"

namespace petlab::trainer {

/// A tensor of a module, in another library's shape.
struct LayerTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

/// A task's head: out_proj(tanh(dense(first token))).
struct LayeredHead {
  std::string task;
  std::vector<std::string> labels;       // in the order of the outputs; empty: regression
  LayerTensor dense_weight, dense_bias;  // (d_model, d_model), (d_model)
  LayerTensor out_weight, out_bias;      // (outputs, d_model), (outputs)
  std::int64_t outputs() const { return out_weight.shape.at(0); }
};

/// A trained module as other libraries store it: separate weights in each layer, without masks.
struct LayeredModule {
  std::string kind;  // "lora"
  std::int64_t d_model = 0;
  std::int64_t layers = 0;
  std::int64_t size = 0;  // bottleneck, rank or prefix length
  double alpha = 0;       // LoRA's update is scaled by alpha / size
  /// By their names in artifacts ("down.weight"): (layers, …). layer_weights()
  /// (trainer/modules/layer_weights.h) has the shapes for one layer.
  std::map<std::string, LayerTensor, std::less<>> weights;
  LayeredHead head;
};

/// Converts the artifact's module for one of its tasks: prototype ⊙ mask in each layer
/// (module.combine combines the task's mask with the layer's), and the task's head. `config` is the
/// artifact's configuration; an empty `task` means its only one.
///
/// Throws std::invalid_argument for an unknown task, or an empty one if the artifact has several.
/// Throws Error for a module without separate layers (full fine-tuning, head only, hypernetwork), a
/// field in which artifact.module and `config` differ, and a tensor that is missing or has the
/// wrong shape.
LayeredModule layered_module(const Artifact& artifact, const sweeps::TrialConfig& config,
                             const std::string& task);

/// The inverse: creates an artifact of a module without sharing or masks. Trial, numerics and
/// backbone digest are empty; `backbone` and `max_tokens` go into its configuration.
Artifact unshared_artifact(const LayeredModule& module, const std::string& backbone,
                           std::int64_t max_tokens);

}  // namespace petlab::trainer
