#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"

namespace petlab::sweeps {

struct TaskDeclaration;  // sweeps/task.h

/// The seed of a trial. A separate type, so that it is never confused with a count.
struct Seed {
  std::uint64_t value = 42;
  auto operator<=>(const Seed&) const = default;
};

/// The first kind of the built-in catalog, which a sweep gets that names none.
std::string_view default_kind();

/// The trained module and the two switches of the ablations (paper, section 3;
/// reference/method.md). Which sizes are active depends on `kind`; see its row in the catalog.
struct ModuleConfig {
  /// Row of the catalog's table of modules (sweeps/catalog.h).
  std::string kind{default_kind()};
  /// True: one prototype for all layers. False: a separate module for each layer.
  bool share = false;
  /// none: every weight is used; learned: straight-through mask; random: drawn once, never learned.
  metrics::MaskKind mask = metrics::MaskKind::none;
  /// The paper's k, the fraction of ones in a mask, in (0, 1]. Active unless mask is none.
  double sparsity_ratio = 0.5;
  /// Adapters, including those of a hypernetwork: bottleneck dimension, > 0.
  std::int64_t bottleneck = 64;
  /// LoRA: rank r, > 0.
  std::int64_t rank = 32;
  /// LoRA: the update is scaled by alpha / rank; > 0.
  double alpha = 32;
  /// Prefix: number of positions l prepended to keys and values, > 0.
  std::int64_t prefix_length = 64;
  /// Prefix: hidden size of the reparametrisation MLP, > 0.
  std::int64_t prefix_hidden = 512;
  /// With several tasks, shared and masked: how the masks of a layer and of a task are combined.
  metrics::MaskCombination combine = metrics::MaskCombination::or_;
  /// LoRA on T5: also in the decoder's attention to the encoder.
  bool cross_attention = false;
  /// Hyperformer++: size of the embeddings of a task, a layer and a position in the layer, > 0.
  std::int64_t hyper_embedding = 64;
  /// Hyperformer++: hidden size of the MLP over the three, > 0.
  std::int64_t hyper_hidden = 128;
  /// Hyperformer++: output size of the MLP, from which all weights are generated, > 0.
  std::int64_t hyper_projected = 64;
  bool operator==(const ModuleConfig&) const = default;
};

/// The type in which a backbone's matrices are stored and multiplied.
enum class ComputeType { float32, bf16 };
/// The name in sweep files.
std::string_view to_string(ComputeType type);
/// Absent for any other text.
std::optional<ComputeType> compute_type_from(std::string_view text);

/// The optimisation protocol (reference/method.md, "RoBERTa-base, single-task").
struct TrainingConfig {
  /// Passes over the training data, > 0. Active if steps is 0.
  std::int64_t epochs = 20;
  /// Total number of optimizer steps; 0: given by epochs.
  std::int64_t steps = 0;
  /// Examples per optimizer step, > 0.
  std::int64_t batch_size = 128;
  /// The batch is computed in this many equal parts to save memory; divides batch_size.
  std::int64_t gradient_accumulation = 1;
  /// For the module's weights and the head, > 0.
  double learning_rate = 1e-4;
  /// For the mask scores, > 0. Active if the module's mask is learned.
  double mask_learning_rate = 3e-3;
  /// AdamW's decoupled weight decay, >= 0; not applied to biases and LayerNorms.
  double weight_decay = 0.1;
  /// Linear warm-up over this fraction of all steps, in [0, 1); then linear decay to 0. Active if
  /// warmup_steps is 0.
  double warmup_ratio = 0.1;
  /// The same in steps; 0: use warmup_ratio.
  std::int64_t warmup_steps = 0;
  /// The part of the loss distributed over all classes (for texts, the whole vocabulary), in [0,
  /// 1).
  double label_smoothing = 0;
  /// Validate every this many optimizer steps, and after the last; 0: after each epoch.
  std::int64_t evaluate_every = 0;
  /// Clip the total gradient norm to this; 0: no clipping.
  double max_grad_norm = 1.0;
  /// The backbone's dropout during training in [0, 1); -1: the value in its config.json.
  double dropout = -1;
  /// For the backbone's matrices; trained parts, norms, softmax and the loss are always float32.
  ComputeType compute = ComputeType::float32;
  /// Write a checkpoint every this many optimizer steps; 0: only after each epoch.
  std::int64_t checkpoint_every = 0;
  bool operator==(const TrainingConfig&) const = default;
};

/// The part of the data that is used, and how.
struct DataConfig {
  /// Inputs are truncated to this many tokens, including special tokens; >= 8.
  std::int64_t max_tokens = 128;
  /// T5: training targets are truncated to this many tokens, including the end token; >= 2.
  std::int64_t max_target_tokens = 128;
  /// At most this many examples of each split, the first after the split's permutation; 0: all.
  std::int64_t max_train_examples = 0;
  std::int64_t max_validation_examples = 0;
  std::int64_t max_test_examples = 0;
  bool operator==(const DataConfig&) const = default;
};

/// How a T5 generates answers, with the semantics of Hugging Face's generate
/// (trainer/backbones/generation.h). Active if it differs from the defaults.
struct DecodingConfig {
  /// 1: greedy decoding.
  std::int64_t beams = 1;
  /// A text's score is its log probability / length^penalty.
  double length_penalty = 1;
  bool early_stopping = false;
  std::int64_t min_tokens = 0;
  /// Includes the end token; 0: 128 for texts, the longest target for classes and scores.
  std::int64_t max_tokens = 0;
  /// No n-gram of this many tokens may occur twice in a text; 0: no limit.
  std::int64_t no_repeat_ngrams = 0;
  bool operator==(const DecodingConfig&) const = default;
};

/// Outputs that an evaluation keeps; does not affect numbers.
struct EvaluationConfig {
  /// Write the predictions on the test data next to the artifact.
  bool keep_predictions = false;
  bool operator==(const EvaluationConfig&) const = default;
};

/// A fully specified training and evaluation: everything that determines its numbers, including the
/// seed.
struct TrialConfig {
  /// Name of a folder under PETLAB_HOME/models, or a path (with a slash); empty: none, for workers
  /// whose trials have no backbone.
  std::string backbone;
  /// Task names: one (`task: x`), or several (`tasks: [x, y]`) for a multi-task trial.
  std::vector<std::string> tasks;
  Seed seed;
  ModuleConfig module;
  TrainingConfig training;
  DataConfig data;
  DecodingConfig decoding;
  EvaluationConfig evaluation;
  /// Free-form settings for third-party workers, a flat JSON object as text ("{}" if empty); hashed
  /// and usable in queries.
  std::string user = "{}";
  /// The id of the worker's catalog (sweeps/worker_catalog.h); empty: the built-in catalog.
  std::string catalog;
  /// The values of the catalog's own fields, by dotted name, as JSON.
  std::map<std::string, std::string> declared;
  bool operator==(const TrialConfig&) const = default;
};

/// A problem of a configuration.
struct Problem {
  /// Dotted name of the field: `training.learning_rate`.
  std::string field;
  /// `is -0.1, must be > 0`
  std::string message;
  bool operator==(const Problem&) const = default;
};

/// All problems of `config` by itself and against the catalog (unknown module, task, impossible
/// combination); empty if it can be trained. `declared` are the user's tasks, in addition to the
/// built-in ones. Never throws.
std::vector<Problem> validate(const TrialConfig& config,
                              std::span<const TaskDeclaration> declared = {});

/// The configuration, nested as in a sweep file, with every active field in a fixed order. Omits
/// fields that do not apply to the module's kind, and later fields at their default (is_written in
/// sweeps/fields.h). `task` for one task, `tasks` for several.
nlohmann::ordered_json to_json(const TrialConfig& config);

/// Reads the output of to_json. Absent fields get the defaults of the module's kind (default_config
/// in sweeps/catalog.h). Throws std::invalid_argument naming the field for unknown keys and wrong
/// types.
TrialConfig trial_config_from_json(const nlohmann::json& json);

}  // namespace petlab::sweeps
