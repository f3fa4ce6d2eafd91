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

/// How masks of a layer and of a task become one (reference/method.md, "Multi-task").
enum class MaskCombination { or_, and_, add };
std::string_view to_string(MaskCombination combination);
/// "or", "and", "add"; anything else is std::nullopt.
std::optional<MaskCombination> mask_combination_from(std::string_view text);

/// The shapes of module whose storage has a formula. A hypernetwork (Hyperformer++) has one for all
/// layers, which makes adapters for each: it is neither shared nor masked.
enum class ModuleFamily { adapter, lora, prefix, hypernetwork };
/// "adapter", "lora", "prefix", "hyperformer++": the kind of module.
std::string_view to_string(ModuleFamily family);
/// The family of that name; anything else is std::nullopt.
std::optional<ModuleFamily> module_family_from(std::string_view text);

/// What a hypernetwork's size depends on beside the adapters that it makes (reference/method.md;
/// the paper's table 2 has 64, 128 and 64).
struct HypernetworkSize {
  std::int64_t embedding = 0;  // E, of a task, of a layer, of a position in the layer
  std::int64_t hidden = 0;     // H, inside the MLP over the three
  std::int64_t projected = 0;  // P, what comes out of it, and all weights are made of
  bool operator==(const HypernetworkSize&) const = default;
};

/// What the storage of a trained module depends on.
struct ModuleStorage {
  ModuleFamily family = ModuleFamily::adapter;
  std::int64_t d_model = 0;
  std::int64_t layers = 0;  // L, the layers that carry a module
  std::int64_t size = 0;    // bottleneck, rank or prefix length
  bool share = false;
  MaskKind mask = MaskKind::none;
  double sparsity_ratio = 1.0;  // k; only used where mask is not none
  std::int64_t tasks = 1;       // T; more than 1: hybrid masks, one a layer and one a task
  /// Of queries, keys and values; 0: d_model, as in all but some T5 (T5-3B: 4,096 beside 1,024).
  std::int64_t attention_width = 0;
  /// Of a hypernetwork, of which the encoder and the decoder have one each.
  HypernetworkSize hypernetwork = {};
};

/// Weights and biases of one layer's module, by the paper's counts: adapter 2·bn·d and bn + d, LoRA
/// 4·r·d (query and value, A and B each), prefix 2·l·d; with an attention of another width w, LoRA
/// 2·r·(d + w) and prefix 2·l·w. Masks cover weights, never biases. Of a hypernetwork, all numbers
/// of both stacks' and the tasks' embeddings, as weights: 5,163,440 for table 2.
struct ModuleSize {
  std::int64_t weights = 0;
  std::int64_t biases = 0;
  std::int64_t total() const { return weights + biases; }
};
ModuleSize module_size(const ModuleStorage& module);

/// Bits by what they hold.
struct StorageBits {
  double values = 0;  // 32 bits a number
  double masks = 0;   // one bit a mask element
  double total() const { return values + masks; }
};

// All of these throw std::invalid_argument, naming the field, for a shape that has no storage: a
// size that is not positive, k outside (0, 1] where there is a mask, masks over modules of their
// own (share false) for several tasks, which the paper gives no formula for, and a hypernetwork
// that is shared or masked.

/// Bit-level storage by the paper's formulas (reference/method.md, "Bit-level storage"), in parts.
/// Positions of the weights that only_mask keeps are not counted, as in the paper.
StorageBits bls_parts(const ModuleStorage& module);

/// Bit-level storage in bits: bls_parts(module).total().
double bls_bits(const ModuleStorage& module);

/// The formula that bls_bits computes, for people: `32·(2·bn·d + bn + d) + 2·bn·d·L`.
std::string bls_formula(const ModuleStorage& module);

/// The bits that an artifact's values and masks hold: the formula with the exact number of kept
/// weights in place of k·n. Equal to bls_bits wherever k·n is a whole number.
std::int64_t stored_bits(const ModuleStorage& module);

/// Numbers that training changes, the head left out: all modules' weights and biases, and a score
/// for each mask element where masks are learned.
std::int64_t trained_parameters(const ModuleStorage& module);

/// Zeros of a mask over n scores at sparsity ratio k: the integer part of (1.0 − k)·n in double
/// (reference/method.md: not always the mathematical floor).
std::int64_t zeros_in_mask(double sparsity_ratio, std::int64_t n);

/// 100 · bits / (32 · backbone_parameters), divided by `tasks` where the share of one task is
/// wanted. Throws std::invalid_argument unless both counts are positive.
double bls_percent(double bits, std::int64_t backbone_parameters, std::int64_t tasks = 1);

/// 100 · parameters / backbone_parameters / tasks.
double parameters_percent(std::int64_t parameters, std::int64_t backbone_parameters,
                          std::int64_t tasks = 1);

}  // namespace petlab::metrics
