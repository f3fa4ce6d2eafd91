#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/compute/layer_norm.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The sub-layers of a transformer's layer.
enum class SubLayer { attention, feed_forward };
/// The projections of self-attention that a module may change.
enum class Projection { query, value };

/// Where in the backbone a hook is called, and for whom.
struct HookPlace {
  std::int64_t layer = 0;
  /// (K + 1): rows [trial_rows[k], trial_rows[k + 1]) belong to trial k.
  std::span<const std::int64_t> trial_rows;
};

/// What a hook sees of a sub-layer.
struct SubLayerOutput {
  SubLayer sub_layer = SubLayer::attention;
  HookPlace place;
  Tensor residual;                  // (rows, d_model) input of the sub-layer
  Tensor output;                    // (rows, d_model)
  const LayerNorm* norm = nullptr;  // the sub-layer's own, where it has one
};

/// What a hook sees of a projection.
struct ProjectionOutput {
  Projection projection = Projection::query;
  HookPlace place;
  Tensor input;   // (rows, d_model)
  Tensor output;  // (rows, d_model) of the frozen projection
};

/// Keys and values that stand before a layer's own: (K, length, d_model) each.
struct Prefix {
  Tensor keys;
  Tensor values;
};

/// What a backbone calls at its named sites. A backbone knows hooks, not modules; a module knows
/// hooks, not backbones. The defaults change nothing, and a site that `acts_on` denies is not
/// called at all.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual bool acts_on(SubLayer) const { return false; }
  virtual bool acts_on(Projection) const { return false; }
  /// The sub-layer's output before its dropout; returns what takes its place.
  virtual Tensor before_dropout(const SubLayerOutput& at) const { return at.output; }
  /// The sub-layer's output after its dropout, before residual and norm; returns what takes its
  /// place.
  virtual Tensor after_dropout(const SubLayerOutput& at) const { return at.output; }
  /// Returns what takes the place of a projection's output.
  virtual Tensor projected(const ProjectionOutput& at) const { return at.output; }
  /// Keys and values to prepend in a layer's self-attention.
  virtual std::optional<Prefix> prefix(std::int64_t /*layer*/) const { return std::nullopt; }
};

}  // namespace petlab::trainer
