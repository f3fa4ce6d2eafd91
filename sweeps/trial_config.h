#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"

namespace petlab::sweeps {

struct TaskDeclaration;  // sweeps/task.h

/// The seed of a trial; its own type so that it is never mixed up with a count.
struct Seed {
  std::uint64_t value = 42;
  auto operator<=>(const Seed&) const = default;
};

/// The trained module and the two switches of the ablations (paper, section 3;
/// reference/method.md). Which of the sizes is active depends on `kind`; the catalog's row of the
/// kind says so.
struct ModuleConfig {
  /// Row of the catalog's table of modules: adapter, lora, prefix, full_finetuning,
  /// head_only, hyperformer++.
  std::string kind = "adapter";
  /// One prototype for all layers (true), or a module of its own for each layer.
  bool share = false;
  /// none: every weight is used; learned: straight-through mask; random: drawn once, never learned.
  metrics::MaskKind mask = metrics::MaskKind::none;
  /// The paper's k, the fraction of ones in a mask, in (0, 1]. Active where mask is not none.
  double sparsity_ratio = 0.5;
  /// Adapter, and those that a hypernetwork makes: bottleneck dimension, > 0.
  std::int64_t bottleneck = 64;
  /// LoRA: rank r, > 0.
  std::int64_t rank = 32;
  /// LoRA: the update is scaled by alpha / rank; > 0.
  double alpha = 32;
  /// Prefix: number of positions l prepended to keys and values, > 0.
  std::int64_t prefix_length = 64;
  /// Prefix: hidden size of the reparametrisation MLP, > 0.
  std::int64_t prefix_hidden = 512;
  /// Several tasks, shared and masked: how the masks of a layer and of a task become one.
  metrics::MaskCombination combine = metrics::MaskCombination::or_;
  /// LoRA on T5: on a decoder's attention to the encoder, too.
  bool cross_attention = false;
  /// Hyperformer++: size of the embeddings of a task, a layer and a position in the layer, > 0.
  std::int64_t hyper_embedding = 64;
  /// Hyperformer++: hidden size of the MLP over the three, > 0.
  std::int64_t hyper_hidden = 128;
  /// Hyperformer++: size of what the MLP makes, of which all weights are generated, > 0.
  std::int64_t hyper_projected = 64;
  bool operator==(const ModuleConfig&) const = default;
};

/// In which type a backbone's matrices are kept and multiplied.
enum class ComputeType { float32, bf16 };
/// As in sweep files.
std::string_view to_string(ComputeType type);
/// Absent where the text is none of them.
std::optional<ComputeType> compute_type_from(std::string_view text);

/// The optimisation protocol (reference/method.md, "RoBERTa-base, single-task").
struct TrainingConfig {
  /// Passes over the training data, > 0. Active where steps is 0.
  std::int64_t epochs = 20;
  /// Optimizer steps in all; 0: as many as the epochs make.
  std::int64_t steps = 0;
  /// Examples an optimizer step, > 0.
  std::int64_t batch_size = 128;
  /// The batch is computed in this many equal parts to save memory; divides batch_size.
  std::int64_t gradient_accumulation = 1;
  /// Of the module's weights and the head, > 0.
  double learning_rate = 1e-4;
  /// Of the mask scores, > 0. Active where the module's mask is learned.
  double mask_learning_rate = 3e-3;
  /// AdamW's decoupled decay, >= 0; none on biases and LayerNorms.
  double weight_decay = 0.1;
  /// Linear warm-up over this fraction of all steps, in [0, 1); then linear decay to 0.
  /// Active where warmup_steps is 0.
  double warmup_ratio = 0.1;
  /// Likewise, over this many steps; 0: warmup_ratio says.
  std::int64_t warmup_steps = 0;
  /// The part of the loss that all classes share (text: all words of the vocabulary), in [0, 1).
  double label_smoothing = 0;
  /// Validation each this many optimizer steps, and after the last; 0: after each epoch.
  std::int64_t evaluate_every = 0;
  /// Total gradient norm is clipped to this; 0 switches clipping off.
  double max_grad_norm = 1.0;
  /// Dropout of the backbone while training in [0, 1); -1: as the backbone's config.json says.
  double dropout = -1;
  /// Of the backbone's matrices; what is trained, norms, softmax and the loss are float32 always.
  ComputeType compute = ComputeType::float32;
  /// A checkpoint each this many optimizer steps; 0: only at the end of each epoch.
  std::int64_t checkpoint_every = 0;
  bool operator==(const TrainingConfig&) const = default;
};

/// How much of the data is used, and how.
struct DataConfig {
  /// Inputs are truncated to this many tokens, special tokens included; >= 8.
  std::int64_t max_tokens = 128;
  /// T5: the targets of training are cut to this many tokens, the end token included; >= 2.
  std::int64_t max_target_tokens = 128;
  /// At most this many examples of each split, the first after the split's permutation; 0: all.
  std::int64_t max_train_examples = 0;
  std::int64_t max_validation_examples = 0;
  std::int64_t max_test_examples = 0;
  bool operator==(const DataConfig&) const = default;
};

/// How a T5 writes its answers, in the meaning of Hugging Face's generate (trainer/backbones/
/// generation.h). Active where it differs from the defaults.
struct DecodingConfig {
  /// 1: the best token each time.
  std::int64_t beams = 1;
  /// A text's score is its log probability / length^penalty.
  double length_penalty = 1;
  bool early_stopping = false;
  std::int64_t min_tokens = 0;
  /// The end token counts; 0: 128 for texts, and the longest target for classes and scores.
  std::int64_t max_tokens = 0;
  /// No so many tokens twice in a text; 0: any.
  std::int64_t no_repeat_ngrams = 0;
  bool operator==(const DecodingConfig&) const = default;
};

/// What is kept of an evaluation; it decides no number.
struct EvaluationConfig {
  /// The predictions on the test data are written beside the artifact.
  bool keep_predictions = false;
  bool operator==(const EvaluationConfig&) const = default;
};

/// One fully specified training and evaluation: everything that decides its numbers, seed included.
struct TrialConfig {
  /// Name of a folder under PETLAB_HOME/models, or a path (one with a slash in it).
  std::string backbone;
  /// Task names; one (`task: x`), or several (`tasks: [x, y]`) for one multi-task trial.
  std::vector<std::string> tasks;
  Seed seed;
  ModuleConfig module;
  TrainingConfig training;
  DataConfig data;
  DecodingConfig decoding;
  EvaluationConfig evaluation;
  /// The free group for workers of others, a flat JSON object as text ("{}" when empty); hashed and
  /// queryable.
  std::string user = "{}";
  bool operator==(const TrialConfig&) const = default;
};

/// One thing wrong with a configuration.
struct Problem {
  /// Dotted name of the field: `training.learning_rate`.
  std::string field;
  /// `is -0.1, must be > 0`
  std::string message;
  bool operator==(const Problem&) const = default;
};

/// Every problem of `config` on its own and against the catalog (unknown module, task, impossible
/// combination); empty when it can be trained. `declared` are tasks that the user declared, beside
/// the built-in ones. Never throws.
std::vector<Problem> validate(const TrialConfig& config,
                              std::span<const TaskDeclaration> declared = {});

/// The configuration nested as in a sweep file, every active field present, in a fixed order;
/// fields that mean nothing for the module's kind are left out, and so are later ones that have
/// their default (is_written in sweeps/fields.h). `task` for one task, `tasks` for
/// several.
nlohmann::ordered_json to_json(const TrialConfig& config);

/// Reads what to_json wrote; fields that are absent keep the defaults of the module's kind
/// (default_config in sweeps/catalog.h).
/// Throws std::invalid_argument naming the field for unknown keys and wrong types.
TrialConfig trial_config_from_json(const nlohmann::json& json);

}  // namespace petlab::sweeps
