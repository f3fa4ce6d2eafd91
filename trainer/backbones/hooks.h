#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/compute/layer_norm.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Where in a backbone's layer a module may act.
enum class Site {
  query,                // the output of self-attention's projection
  value,                // likewise
  keys_and_values,      // what self-attention sees before a sequence's own tokens
  attention_output,     // the output of the sub-layer, before its residual and norm
  feed_forward_output,  // likewise
  // The same of a decoder's attention to the encoder's states.
  cross_query,
  cross_value,
  cross_keys_and_values,
  cross_attention_output
};

/// Whether a site is one of a decoder's attention to the encoder's states.
constexpr bool is_cross_attention(Site site) { return site >= Site::cross_query; }

/// A site in a layer, and for whom the hook is called.
struct HookPlace {
  Site site = Site::query;
  std::int64_t layer = 0;  // number of the carrier among those of the site (Backbone::carriers)
  /// (K + 1): rows [trial_rows[k], trial_rows[k + 1]) belong to trial k.
  std::span<const std::int64_t> trial_rows;
};

/// What a hook sees of a sub-layer.
struct SubLayerOutput {
  HookPlace place;
  Tensor residual;                  // (rows, d_model) input of the sub-layer
  Tensor output;                    // (rows, d_model)
  const LayerNorm* norm = nullptr;  // what follows on output and residual, where it does
};

/// What a hook sees of a projection.
struct ProjectionOutput {
  HookPlace place;
  Tensor input;   // (rows, width in)
  Tensor output;  // (rows, width out) of the frozen projection
};

/// Keys and values that stand before a layer's own: (K, length, width out) each.
struct Prefix {
  Tensor keys;
  Tensor values;
};

/// What a backbone calls at its sites. A backbone knows hooks, not modules; a module knows hooks
/// and carriers, not what stands around them. The defaults change nothing, and a site that
/// `acts_on` denies is not called at all.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual bool acts_on(Site) const { return false; }
  /// The sub-layer's output before its dropout; returns what takes its place.
  virtual Tensor before_dropout(const SubLayerOutput& at) const { return at.output; }
  /// The sub-layer's output after its dropout, before residual and norm; returns what takes its
  /// place.
  virtual Tensor after_dropout(const SubLayerOutput& at) const { return at.output; }
  /// Returns what takes the place of a projection's output.
  virtual Tensor projected(const ProjectionOutput& at) const { return at.output; }
  /// Keys and values to prepend in an attention.
  virtual std::optional<Prefix> prefix(const HookPlace& /*at*/) const { return std::nullopt; }
};

}  // namespace petlab::trainer
