#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace petlab::metrics {

/// How a layer's weights are chosen from a module (reference/method.md, "The ablations").
enum class MaskKind { none, learned, random };
std::string_view to_string(MaskKind mask);
/// "none", "learned", "random"; anything else is std::nullopt.
std::optional<MaskKind> mask_kind_from(std::string_view text);

/// How masks of a layer and of a task are combined (reference/method.md, "Multi-task").
enum class MaskCombination { or_, and_, add };
std::string_view to_string(MaskCombination combination);
/// "or", "and", "add"; anything else is std::nullopt.
std::optional<MaskCombination> mask_combination_from(std::string_view text);

/// The kinds of modules with a storage formula. A hypernetwork (Hyperformer++) generates the
/// adapters of all layers, so it is neither shared nor masked.
enum class ModuleFamily { adapter, lora, prefix, hypernetwork };
/// The kind of module: "adapter", "lora", "prefix", "hyperformer++".
std::string_view to_string(ModuleFamily family);
/// The family with that name; anything else is std::nullopt.
std::optional<ModuleFamily> module_family_from(std::string_view text);

/// The sizes of a hypernetwork, apart from those of its adapters (reference/method.md; the paper's
/// table 2 has 64, 128 and 64).
struct HypernetworkSize {
  std::int64_t embedding = 0;  // E, for a task, a layer, a position in the layer
  std::int64_t hidden = 0;     // H, in the MLP over the three
  std::int64_t projected = 0;  // P, its output, from which all weights are generated
  bool operator==(const HypernetworkSize&) const = default;
};

/// The properties of a trained module that determine its storage.
struct ModuleStorage {
  ModuleFamily family = ModuleFamily::adapter;
  std::int64_t d_model = 0;
  std::int64_t layers = 0;  // L, the number of layers with a module
  std::int64_t size = 0;    // bottleneck, rank or prefix length
  bool share = false;
  MaskKind mask = MaskKind::none;
  double sparsity_ratio = 1.0;  // k; only used if mask is not none
  std::int64_t tasks = 1;       // T; more than 1: hybrid masks, one per layer and one per task
  /// Width of queries, keys and values; 0: d_model, which only some T5 differ from (T5-3B: 4,096
  /// against 1,024).
  std::int64_t attention_width = 0;
  /// Sizes of a hypernetwork; the encoder and the decoder have one each.
  HypernetworkSize hypernetwork = {};
};

/// Weights and biases of one layer's module, by the paper's counts: adapter 2·bn·d and bn + d, LoRA
/// 4·r·d (query and value, A and B each), prefix 2·l·d. With another attention width w: LoRA 2·r·(d
/// + w) and prefix 2·l·w. Masks cover weights, never biases. For a hypernetwork, all values of both
/// stacks' generators and the tasks' embeddings count as weights: 5,163,440 for table 2.
struct ModuleSize {
  std::int64_t weights = 0;
  std::int64_t biases = 0;
  std::int64_t total() const { return weights + biases; }
};
ModuleSize module_size(const ModuleStorage& module);

/// Storage bits by content.
struct StorageBits {
  double values = 0;  // 32 bits per number
  double masks = 0;   // one bit per mask element
  double total() const { return values + masks; }
};

// All of these throw std::invalid_argument, naming the field, for a shape without storage: a size
// that is not positive, k outside (0, 1] with masks, masks over unshared modules for several tasks,
// for which the paper has no formula, and a hypernetwork that is shared or masked.

/// Bit-level storage by the paper's formulas (reference/method.md, "Bit-level storage"), in parts.
/// As in the paper, the positions of the weights that only_mask keeps are not counted.
StorageBits bls_parts(const ModuleStorage& module);

/// Bit-level storage in bits: bls_parts(module).total().
double bls_bits(const ModuleStorage& module);

/// The formula of bls_bits as text: `32·(2·bn·d + bn + d) + 2·bn·d·L`.
std::string bls_formula(const ModuleStorage& module);

/// The bits of an artifact's values and masks: the formula with the exact number of kept weights in
/// place of k·n. Equal to bls_bits if k·n is an integer.
std::int64_t stored_bits(const ModuleStorage& module);

/// Number of values that training changes, without the head: all modules' weights and biases and,
/// if masks are learned, a score for each mask element.
std::int64_t trained_parameters(const ModuleStorage& module);

/// Number of zeros in a mask over n scores at sparsity ratio k: the integer part of (1.0 − k)·n in
/// double (reference/method.md: not always the mathematical floor).
std::int64_t zeros_in_mask(double sparsity_ratio, std::int64_t n);

/// 100 · bits / (32 · backbone_parameters), divided by `tasks` for the share of one task. Throws
/// std::invalid_argument unless both counts are positive.
double bls_percent(double bits, std::int64_t backbone_parameters, std::int64_t tasks = 1);

/// 100 · parameters / backbone_parameters / tasks.
double parameters_percent(std::int64_t parameters, std::int64_t backbone_parameters,
                          std::int64_t tasks = 1);

}  // namespace petlab::metrics
