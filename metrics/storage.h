#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/size_formula.h"

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

/// A name of a size in formulas, and the field of the configuration that sets it.
struct SizeName {
  std::string name;   // "bn"
  std::string field;  // "module.bottleneck"
};

/// How a kind of module is stored, as its row of the catalog declares it (sweeps/catalog.h).
/// Formulas know `sizes`, d (the backbone's width), w (of queries, keys and values), L (layers with
/// a module) and T (tasks).
struct StorageFormula {
  std::string kind;
  /// The sizes in `weights` and `biases`; the first is the module's size.
  std::vector<SizeName> sizes;
  /// The elements of each weight matrix of a layer; each has a mask of its own.
  std::vector<SizeFormula> weights;
  /// Values of a layer that are never masked.
  SizeFormula biases;
  /// One module generates all layers' weights (Hyperformer++): it is neither shared nor masked.
  bool per_model = false;
};

/// The properties of a trained module that determine its storage.
struct ModuleStorage {
  const StorageFormula* formula = nullptr;
  std::int64_t d_model = 0;  // 0: unknown, so that formulas cannot use it
  std::int64_t layers = 0;   // L, the number of layers with a module
  std::int64_t size = 0;     // the first of the formula's sizes: bottleneck, rank, prefix length
  bool share = false;
  MaskKind mask = MaskKind::none;
  double sparsity_ratio = 1.0;  // k; only used if mask is not none
  std::int64_t tasks = 1;       // T; more than 1: hybrid masks, one per layer and one per task
  /// Width of queries, keys and values; 0: d_model, which only some T5 differ from (T5-3B: 4,096
  /// against 1,024).
  std::int64_t attention_width = 0;
  /// The formula's other sizes, in its order.
  std::vector<std::int64_t> other_sizes = {};
  /// Further values by name: those of a backbone of unknown type, which has no d_model.
  std::map<std::string, std::int64_t> numbers = {};
};

/// Weights and biases of one layer's module, by its formula; the paper's are 2·bn·d and bn + d for
/// adapters, 4·r·d for LoRA and 2·l·d for prefixes. Masks cover weights, never biases. For a
/// hypernetwork, all values of both stacks' generators and the tasks' embeddings count as weights:
/// 5,163,440 for table 2.
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
// for which the paper has no formula, and a module per model that is shared or masked.

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
