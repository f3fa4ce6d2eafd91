// Longer than 500 lines because it is a single sum: trained, kept and temporary data of the same
// step, computed from the same few sizes.
#include "sweeps/memory.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sweeps/backbone.h"
#include "sweeps/catalog.h"
#include "sweeps/text_to_text.h"

namespace petlab::sweeps {
namespace {

// Each count below follows what trainer/ keeps in memory:
// backbones/{encoder,modernbert,t5,blocks,attention}.cpp,
// compute/{operations,dropout,rms_norm,smoothed_loss}.cpp, modules/, training/optimizer.cpp.

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kShort = 2;

/// The program and the parts of LibTorch's libraries that are read (measured on x86-64).
constexpr std::int64_t kProgram = 125 * kMib;

/// Maximum source tokens of an evaluation batch (training/evaluation.cpp).
constexpr std::int64_t kEvaluationTokens = 2048;
constexpr std::int64_t kEvaluationTokensOfGpu = 8192;
/// Maximum number of simultaneous logits in a T5's loss (compute/smoothed_loss.h).
constexpr std::int64_t kLossLogits = std::int64_t{1} << 24;
/// On a CPU, rows of probabilities are padded to a multiple of this (compute/vector_math.h).
constexpr std::int64_t kProbabilityBlock = 16;
/// Default length of answers if decoding.max_tokens is 0 (training/text_objective.cpp).
constexpr std::int64_t kAnswerTokens = 128;
constexpr std::int64_t kScoreTokens = 8;
/// Initial capacity of a decoder's keys and values, in tokens (backbones/t5_decoder.cpp).
constexpr std::int64_t kFirstRoom = 16;

/// A batch of texts of equal length.
struct Texts {
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::int64_t tokens() const { return count * length; }
};

/// Numbers that a forward pass keeps for the backward pass.
struct Kept {
  std::int64_t activations = 0;
  std::int64_t dropout = 0;        // dropout flags, one byte each
  std::int64_t probabilities = 0;  // of attention
};

/// A trained tensor with its masks, as in modules/masked_weight.cpp.
struct TrainedWeight {
  std::int64_t numbers = 0;  // per layer
  std::int64_t layers = 1;
  bool share = true;
  bool masked = false;
  bool trained = true;  // false: computed from trained tensors
};

class Estimator {
 public:
  Estimator(const TrialConfig& config, const BackboneShape& shape,
            std::span<const TaskDeclaration> tasks, MemoryDevice device)
      : config_(config),
        shape_(shape),
        tasks_(tasks),
        gpu_(device == MemoryDevice::gpu),
        short_(config.training.compute == ComputeType::bf16),
        number_(gpu_ && short_ ? kShort : kFloat),
        width_(shape.heads * shape.d_head),
        row_(*module_of(config)),
        memory_(row_.declared->memory),
        sizes_(module_sizes()) {}

  MemoryEstimate estimate() {
    const Texts sources = step_sources();
    const Texts targets = step_targets(sources);
    add_trained();
    MemoryEstimate result;
    result.tokens = sources.tokens();
    result.target_tokens = targets.tokens();
    result.program = gpu_ ? kGpuContextMib * kMib : kProgram;
    // The pages that were copied to bfloat16 are released.
    result.mapped =
        gpu_ ? 0 : kFloat * (shape_.parameters() - (product_copies() > 0 ? matrix_numbers() : 0));
    result.backbone = (gpu_ ? number_ * shape_.parameters() : result.mapped) + product_copies();
    result.weights = result.backbone + trained_weights_;
    result.optimizer = trained_optimizer_;
    result.reach = own_reach();
    for (std::size_t other = 0; other < kGradientReaches; ++other) {
      keep_step(sources, targets, std::max(own_reach(), static_cast<GradientReach>(other)));
      result.at_step_beside[other] = bytes_of(kept_) + step_workspace(sources, targets);
    }
    keep_step(sources, targets, own_reach());
    const std::int64_t activations = bytes_of(kept_);
    const std::int64_t workspace = step_workspace(sources, targets);
    const std::int64_t update = largest_update_;
    // The test uses the weights of the best validation while those of the last step are kept.
    const std::int64_t evaluation = trained_values_ + evaluation_workspace();
    result.at_step = activations + workspace;
    result.at_update = update;
    result.at_evaluation = evaluation;
    if (activations + workspace >= std::max(update, evaluation)) {
      result.activations = activations;
      result.workspace = workspace;
    } else {
      result.peak = update > evaluation ? MemoryPeak::update : MemoryPeak::evaluation;
      result.workspace = std::max(update, evaluation);
    }
    return result;
  }

 private:
  bool is_text_to_text() const { return shape_.decoder_layers > 0; }
  bool is_modernbert() const { return shape_.model_type == "modernbert"; }
  bool is_full() const { return row_.trains_backbone(); }
  /// True if a gradient enters the backbone, of this trial or of one in its gang.
  bool has_gradient_in_backbone() const { return reach_ != GradientReach::head; }
  GradientReach own_reach() const {
    return memory_.inside_attention || is_full() ? GradientReach::attention
           : memory_.after_attention             ? GradientReach::attention_output
           : row_.trains_head_only()             ? GradientReach::head
                                                 : GradientReach::feed_forward_output;
  }
  bool reaches_attention() const { return reach_ == GradientReach::attention; }
  /// Positions that the module adds to the keys of attention.
  std::int64_t added_keys() const { return value_of(memory_.keys); }
  // -1 is the rate in the checkpoint's config.json, which is hardly ever 0.
  bool drops() const { return config_.training.dropout != 0; }

  // ---- batches ----

  std::int64_t most_tokens() const {
    // RoBERTa's position table has two unused rows before the first position.
    const std::int64_t positions =
        shape_.max_positions == 0 ? std::numeric_limits<std::int64_t>::max()
                                  : shape_.max_positions - (shape_.model_type == "roberta" ? 2 : 0);
    return std::max<std::int64_t>(1, std::min(config_.data.max_tokens, positions));
  }

  Texts step_sources() const {
    std::int64_t examples = config_.training.batch_size;
    if (config_.data.max_train_examples > 0) {
      examples = std::min(examples, config_.data.max_train_examples);
    }
    const std::int64_t parts = config_.training.gradient_accumulation;
    return {(examples + parts - 1) / parts, most_tokens()};
  }

  /// The answer for a class or score has at most one token per byte of its text, and the end token.
  std::int64_t longest_answer(const TaskDeclaration& task) const {
    if (task.kind == TaskKind::text) return kAnswerTokens;
    if (task.kind == TaskKind::regression) return kScoreTokens;
    std::size_t bytes = 0;
    for (std::size_t c = 0; c < task.classes.size(); ++c) {
      bytes = std::max(bytes, target_text(task, static_cast<std::int64_t>(c)).size());
    }
    return static_cast<std::int64_t>(bytes) + 2;
  }

  Texts step_targets(const Texts& sources) const {
    if (!is_text_to_text()) return {};
    std::int64_t length = 1;
    for (const TaskDeclaration& task : tasks_) {
      const std::int64_t most = config_.data.max_target_tokens;
      length = std::max(length,
                        task.kind == TaskKind::text ? most : std::min(most, longest_answer(task)));
    }
    return {sources.count, length};
  }

  // ---- weights ----

  /// Copies of the frozen backbone's matrices in another type or order for products on a CPU: with
  /// bf16, two 16-bit copies of each, one per direction.
  std::int64_t product_copies() const {
    if (gpu_ || !short_ || is_full()) return 0;
    return 2 * kShort * matrix_numbers();
  }

  std::int64_t matrix_numbers() const {
    const std::int64_t d = shape_.d_model;
    const std::int64_t attention = 4 * d * width_;
    const std::int64_t feed_forward = (shape_.gated_ff ? 3 : 2) * d * shape_.d_ff;
    return shape_.encoder_layers * (attention + feed_forward) +
           shape_.decoder_layers * (2 * attention + feed_forward) +
           (is_text_to_text() ? shape_.vocab_size * d : 0);
  }

  void add_trained() {
    for (const TrainedWeight& weight : module_weights()) add(weight);
    if (is_full()) add_full();
    if (!is_text_to_text()) {
      for (const TaskDeclaration& task : tasks_) {
        const std::int64_t outputs =
            task.kind == TaskKind::regression ? 1 : static_cast<std::int64_t>(task.classes.size());
        const std::int64_t d = shape_.d_model;
        for (const std::int64_t numbers : {d * d, d, outputs * d, outputs}) add({numbers});
      }
    }
  }

  /// The value of a formula of the kind's declaration (ModuleMemory in sweeps/catalog.h).
  std::int64_t value_of(const metrics::SizeFormula& formula,
                        const metrics::SizeValues& more = {}) const {
    if (formula.is_zero()) return 0;
    metrics::SizeValues values = sizes_;
    values.insert(values.end(), more.begin(), more.end());
    return formula.value(values);
  }

  metrics::SizeValues module_sizes() const {
    const std::int64_t layers = module_layers(config_, shape_);
    metrics::SizeValues values{{"d", shape_.d_model},
                               {"w", width_},
                               {"L", layers},
                               {"T", static_cast<std::int64_t>(tasks_.size())},
                               {"Le", shape_.encoder_layers},
                               {"Ld", shape_.decoder_layers},
                               {"M", config_.module.share ? 1 : layers},
                               {"g", is_text_to_text() ? 1 : 0}};
    for (const metrics::SizeName& size : row_.declared->sizes) {
      values.emplace_back(size.name, size_of(config_, size.field));
    }
    return values;
  }

  std::vector<TrainedWeight> module_weights() const {
    std::vector<TrainedWeight> all;
    for (const metrics::SizeFormula& tensor : memory_.trained) all.push_back({value_of(tensor)});
    const metrics::StorageFormula* const stored = row_.formula();
    if (stored == nullptr || stored->per_model) return all;
    const std::int64_t layers = module_layers(config_, shape_);
    const bool masked = config_.module.mask != metrics::MaskKind::none;
    const bool trained = memory_.trained.empty();
    for (const metrics::SizeFormula& matrix : stored->weights) {
      all.push_back({value_of(matrix), layers, config_.module.share, masked, trained});
    }
    if (!stored->biases.is_zero()) {
      all.push_back({value_of(stored->biases), layers, config_.module.share, false, trained});
    }
    return all;
  }

  void add(const TrainedWeight& weight) {
    const std::int64_t values = weight.numbers * (weight.share ? 1 : weight.layers);
    const std::int64_t all = weight.numbers * weight.layers;
    const std::int64_t tasks = static_cast<std::int64_t>(tasks_.size());
    std::int64_t scores = 0;
    trained_weights_ += kFloat * values;
    trained_optimizer_ += kFloat * values;  // gradient
    if (weight.masked) {
      const std::int64_t of_tasks = tasks > 1 ? weight.numbers * tasks : 0;
      trained_weights_ += number_ * all + kFloat * (all + of_tasks);  // merged weights, masks
      trained_optimizer_ += number_ * all;
      if (config_.module.mask == metrics::MaskKind::learned) scores = all + of_tasks;
      // Gradients of values and masks for all layers.
      largest_update_ = std::max(largest_update_, (tasks > 1 ? 5 : 3) * kFloat * all);
    } else if (number_ != kFloat) {
      trained_weights_ += number_ * values;
      trained_optimizer_ += number_ * values;
    }
    const std::int64_t moved = (weight.trained ? values : 0) + scores;
    trained_weights_ += kFloat * scores;
    trained_optimizer_ += kFloat * (scores + 2 * moved + moved);  // moments, best weights
    trained_values_ += kFloat * moved;
    largest_update_ = std::max(largest_update_, kFloat * std::max(values, scores));
  }

  void add_full() {
    const std::int64_t all = shape_.parameters();
    add({all - shape_.vocab_size * shape_.d_model});
    add({shape_.vocab_size * shape_.d_model});
    // AdamW updates one tensor at a time. The largest is the embedding, and each use of it creates
    // a full gradient.
    const std::int64_t uses = is_text_to_text() && shape_.tied_embeddings ? 2 : 1;
    largest_update_ = uses * kFloat * shape_.vocab_size * shape_.d_model;
  }

  // ---- kept for the backward pass ----

  void keep_step(const Texts& sources, const Texts& targets, GradientReach reach) {
    reach_ = reach;
    kept_ = {};
    if (is_text_to_text()) {
      keep_t5(sources, targets);
    } else if (has_gradient_in_backbone()) {
      is_modernbert() ? keep_modernbert(sources) : keep_encoder(sources);
    }
  }

  void keep(std::int64_t activations, std::int64_t dropout = 0) {
    kept_.activations += activations;
    if (drops()) kept_.dropout += dropout;
  }

  void keep_attention(std::int64_t queries, std::int64_t keys, std::int64_t texts) {
    std::int64_t row = added_keys() + keys;
    if (!gpu_) row = (row + kProbabilityBlock - 1) / kProbabilityBlock * kProbabilityBlock;
    const std::int64_t numbers = texts * shape_.heads * queries * row;
    kept_.probabilities += numbers;
    if (has_wide_scores()) keep(texts * (queries + keys) * width_);  // 32-bit queries and keys
    // A GPU keeps the softmax, its dropout mask, and the factor of the values.
    if (gpu_ && drops()) {
      kept_.probabilities += has_wide_scores() ? 2 * numbers : numbers;
      kept_.dropout += numbers;
    }
  }

  /// True if attention scores and their softmax have 32 bits while everything else has 16.
  bool has_wide_scores() const { return gpu_ && short_ && drops(); }
  /// True if products use 16 bits while everything else has 32.
  bool has_short_products() const { return short_ && !gpu_; }
  /// Size of n numbers stored in the type of such products, in units of number_ bytes.
  std::int64_t as_products_have(std::int64_t n) const {
    return has_short_products() ? n * kShort / kFloat : n;
  }

  std::int64_t bytes_of(const Kept& kept) const {
    const std::int64_t full_copies = !gpu_ && short_ && is_full() ? kShort * matrix_numbers() : 0;
    return number_ * (kept.activations + kept.probabilities) + kept.dropout + full_copies;
  }

  /// Counts a module between `rows` of input, of which attention's queries are `queries`, and
  /// `keys` rows of keys.
  void keep_module(std::int64_t rows, std::int64_t queries, std::int64_t keys) {
    keep(value_of(memory_.keeps, {{"i", rows}, {"q", queries}, {"k", keys}}));
  }

  void keep_encoder(const Texts& texts) {
    const std::int64_t d = shape_.d_model;
    const std::int64_t f = shape_.d_ff;
    const std::int64_t tokens = texts.tokens();
    if (is_full()) keep(tokens * d, tokens * d);  // embeddings
    for (std::int64_t l = 0; l < shape_.encoder_layers; ++l) {
      // The head reads only the first token of each text.
      const bool last = l + 1 == shape_.encoder_layers;
      const std::int64_t rows = last ? texts.count : tokens;
      const bool reached = l > 0 || reaches_attention();
      if (reached) {
        keep(rows * width_ + 2 * tokens * width_);  // query, key, value
        keep_attention(last ? 1 : texts.length, texts.length, texts.count);
        keep(rows * d, rows * d);  // norm and dropout
        // gelu and dropout
        keep(is_full() ? rows * f : as_products_have(rows * f), rows * d);
      }
      keep(rows * d);  // norm
      if (memory_.inside_attention) keep_module(tokens, rows, tokens);
      if (memory_.after_feed_forward) keep_module(rows, rows, rows);
      // The norm of an adapter's output, of all rows in its pass.
      if (reached && (memory_.after_feed_forward || reach_ != own_reach())) keep(rows * d);
      if (is_full()) {
        // The inputs of products. Short query, key and value products each have a copy.
        keep(as_products_have((has_short_products() ? 3 : 1) * tokens * d +
                              rows * (width_ + d + f)));
      }
    }
    keep_head(texts);
  }

  /// Counts the layers as a T5's encoder. In fact, the last one computes each text's first token
  /// only.
  void keep_modernbert(const Texts& texts) {
    keep_stack(shape_.encoder_layers, texts, nullptr);
    keep_head(texts);
  }

  void keep_head(const Texts& texts) {
    keep(texts.count * 3 * shape_.d_model, texts.count * 2 * shape_.d_model);
  }

  void keep_t5(const Texts& sources, const Texts& targets) {
    keep_stack(shape_.encoder_layers, sources, nullptr);
    keep_stack(shape_.decoder_layers, targets, &sources);
    const std::int64_t d = shape_.d_model;
    keep(sources.tokens() * d);                        // the states passed to the decoder
    keep((is_full() ? 2 : 1) * targets.tokens() * d);  // the loss
    kept_.activations += value_of(memory_.keeps_once);
  }

  void keep_stack(std::int64_t layers, const Texts& texts, const Texts* sources) {
    const std::int64_t d = shape_.d_model;
    const std::int64_t rows = texts.tokens();
    if (is_full()) keep(0, rows * d);  // embeddings
    for (std::int64_t l = 0; l < layers; ++l) {
      const bool enters = l > 0 || is_full();  // true if the layer's input has a gradient
      if (enters || reaches_attention()) {
        keep_norm(enters ? rows : 0);
        keep_attention_block(rows, rows);
        if (memory_.inside_attention) keep_module(rows, rows, rows);
        keep_attention(texts.length, texts.length, texts.count);
      }
      if (memory_.after_attention) keep_module(rows, rows, rows);
      if (sources != nullptr) {
        keep_norm(rows);
        keep_attention_block(rows, sources->tokens());
        if (acts_in_cross_attention()) keep_module(rows, rows, sources->tokens());
        keep_attention(texts.length, sources->length, texts.count);
      }
      if (enters || sources != nullptr || reach_ >= GradientReach::attention_output) {
        keep_norm(rows);
        keep_feed_forward(rows);
      }
      if (memory_.after_feed_forward) keep_module(rows, rows, rows);
    }
    keep_norm(rows);
    keep(0, rows * d);
  }

  /// Values kept by a norm without mean. A trained norm also keeps the factor of its weight, and
  /// the product after it keeps its input.
  void keep_norm(std::int64_t rows) { keep((is_full() ? 3 : 1) * rows * shape_.d_model); }

  void keep_attention_block(std::int64_t rows, std::int64_t key_rows) {
    keep(rows * width_ + 2 * key_rows * width_, rows * shape_.d_model);
    if (is_full()) keep(rows * width_);
  }

  /// Kinds with the field module.cross_attention act there only if it is set.
  bool acts_in_cross_attention() const {
    return memory_.inside_attention &&
           (config_.module.cross_attention || !row_.has_field("module.cross_attention"));
  }

  void keep_feed_forward(std::int64_t rows) {
    const std::int64_t wide = rows * shape_.d_ff;
    if (shape_.gated_ff) {
      keep(3 * wide, wide);
    } else if (gpu_ || !drops()) {
      keep(wide, wide);
    } else {
      keep(0, wide);  // relu and dropout fused
    }
    if (is_full()) keep(wide);
    keep(0, rows * shape_.d_model);
  }

  // ---- temporary memory ----

  /// Temporary memory for `rows` rows in a layer: inputs and outputs of the widest products, and
  /// the residuals.
  std::int64_t layer_workspace(std::int64_t rows) const {
    const std::int64_t narrow = number_ * rows * 4 * shape_.d_model;
    const std::int64_t rounded = has_short_products() ? 2 * kShort * rows * shape_.d_ff : 0;
    // In a frozen encoder, nothing between two short products has 32 bits.
    if (has_short_products() && !is_text_to_text() && !is_modernbert() && !is_full()) {
      return narrow + rounded;
    }
    const std::int64_t wide = shape_.gated_ff ? 3 : 2;
    return number_ * rows * wide * shape_.d_ff + narrow + rounded;
  }

  std::int64_t step_workspace(const Texts& sources, const Texts& targets) const {
    if (!has_gradient_in_backbone()) return layer_workspace(sources.tokens());
    std::int64_t most = layer_workspace(std::max(sources.tokens(), targets.tokens()));
    most += number_ * 2 * sources.count * added_keys() * width_;
    if (is_text_to_text()) {
      // Logits and their exponentials, or their gradient.
      const std::int64_t logits =
          std::min(std::max(kLossLogits, shape_.vocab_size), targets.tokens() * shape_.vocab_size);
      most = std::max(most, 2 * kFloat * logits);
      // The output projection is the embedding, so its gradient is kept until those of the other
      // uses.
      if (is_full()) most += kFloat * shape_.vocab_size * shape_.d_model;
    }
    return most;
  }

  std::int64_t evaluation_workspace() const {
    const std::int64_t length = most_tokens();
    const std::int64_t tokens = gpu_ ? kEvaluationTokensOfGpu : kEvaluationTokens;
    const Texts texts{std::max<std::int64_t>(1, tokens / length), length};
    const std::int64_t probabilities =
        (gpu_ ? 3 : 1) * number_ * texts.count * shape_.heads * length * (added_keys() + length);
    const std::int64_t forward = layer_workspace(texts.tokens()) + probabilities;
    return is_text_to_text() ? std::max(forward, decoding_workspace(texts)) : forward;
  }

  /// Keys and values of the sources and of the generated texts, and the logits of the next token.
  std::int64_t decoding_workspace(const Texts& texts) const {
    const DecodingConfig& decoding = config_.decoding;
    std::int64_t length = decoding.max_tokens;
    if (length == 0) {
      for (const TaskDeclaration& task : tasks_) length = std::max(length, longest_answer(task));
    }
    std::int64_t room = kFirstRoom;
    while (room < length) room = 2 * room + kFirstRoom;
    const std::int64_t rows = texts.count * decoding.beams;
    const std::int64_t kept = 2 * width_ * shape_.decoder_layers;
    return number_ * (kept * (texts.tokens() + rows * room) + texts.tokens() * shape_.d_model) +
           2 * kFloat * rows * shape_.vocab_size;
  }

  const TrialConfig& config_;
  const BackboneShape& shape_;
  std::span<const TaskDeclaration> tasks_;
  bool gpu_;
  bool short_;           // bf16
  std::int64_t number_;  // bytes per activation
  std::int64_t width_;   // width of queries, keys and values
  const ModuleRow& row_;
  const ModuleMemory& memory_;
  metrics::SizeValues sizes_;                  // of the kind's formulas
  GradientReach reach_ = GradientReach::head;  // the deepest in the pass
  Kept kept_;
  std::int64_t trained_weights_ = 0;
  std::int64_t trained_optimizer_ = 0;
  std::int64_t trained_values_ = 0;  // size of one copy of everything that the optimizer updates
  std::int64_t largest_update_ = 0;
};

}  // namespace

std::string_view to_string(MemoryPeak peak) {
  switch (peak) {
    case MemoryPeak::step:
      return "step";
    case MemoryPeak::update:
      return "update";
    case MemoryPeak::evaluation:
      return "evaluation";
  }
  return "";
}

std::int64_t to_mib(std::int64_t bytes) { return (bytes + kMib - 1) / kMib; }

MemoryEstimate estimate_memory(const TrialConfig& config, const BackboneShape& shape,
                               std::span<const TaskDeclaration> tasks, MemoryDevice device) {
  return Estimator(config, shape, tasks, device).estimate();
}

MemoryEstimate estimate_memory(const Sweep& sweep, const TrialConfig& config, MemoryDevice device) {
  std::vector<TaskDeclaration> tasks;
  for (const std::string& name : config.tasks) tasks.push_back(sweep.tasks.at(name));
  return estimate_memory(config, sweep.backbone_shapes.at(config.backbone), tasks, device);
}

std::int64_t gang_memory(std::span<const MemoryEstimate> trials) {
  std::int64_t common = 0;
  std::int64_t own = 0;
  std::int64_t step = 0;
  std::int64_t alone = 0;
  GradientReach deepest = GradientReach::head;
  for (const MemoryEstimate& trial : trials) deepest = std::max(deepest, trial.reach);
  for (const MemoryEstimate& trial : trials) {
    common = std::max(common, trial.program + trial.backbone);
    own += trial.weights - trial.backbone + trial.optimizer;
    step += trial.at_step_beside[static_cast<std::size_t>(deepest)];
    alone = std::max({alone, trial.at_update, trial.at_evaluation});
  }
  return common + own + std::max(step, alone);
}

}  // namespace petlab::sweeps
