#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace petlab::metrics {

/// How a layer's weights are chosen from a module (reference/method.md, "The ablations").
enum class MaskKind { none, learned, random };
std::string_view to_string(MaskKind mask);
/// "none", "learned", "random"; anything else is std::nullopt.
std::optional<MaskKind> mask_kind_from(std::string_view text);

/// The shapes of module whose storage has a formula.
enum class ModuleFamily { adapter, lora, prefix };

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
};

/// Bit-level storage in bits by the paper's formulas (reference/method.md, "Bit-level storage").
double bls_bits(const ModuleStorage& module);

/// The bits that an artifact's values and masks hold: the formula with the exact number of kept
/// weights in place of k·n. Equal to bls_bits wherever k·n is a whole number.
std::int64_t stored_bits(const ModuleStorage& module);

/// Zeros of a mask over n scores at sparsity ratio k: the integer part of (1.0 − k)·n in double
/// (reference/method.md: not always the mathematical floor).
std::int64_t zeros_in_mask(double sparsity_ratio, std::int64_t n);

/// 100 · bits / (32 · backbone_parameters).
double bls_percent(double bits, std::int64_t backbone_parameters);

}  // namespace petlab::metrics
