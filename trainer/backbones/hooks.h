#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The sites of a layer at which a module can act.
enum class Site {
  query,                // the output of self-attention's query projection
  value,                // the output of its value projection
  keys_and_values,      // the keys and values before a sequence's own in self-attention
  attention_output,     // the output of the sub-layer, before its residual and norm
  feed_forward_output,  // likewise
  // The same sites of a decoder's attention to the encoder's states.
  cross_query,
  cross_value,
  cross_keys_and_values,
  cross_attention_output
};

/// Whether a site is in a decoder's attention to the encoder's states.
constexpr bool is_cross_attention(Site site) { return site >= Site::cross_query; }

/// The site, layer and trials of a call to a hook.
struct HookPlace {
  Site site = Site::query;
  std::int64_t layer = 0;  // index among the carriers of the site (Backbone::carriers)
  /// (K + 1): rows [trial_rows[k], trial_rows[k + 1]) belong to trial k.
  std::span<const std::int64_t> trial_rows;
};

/// A sub-layer's output, as passed to a hook.
struct SubLayerOutput {
  HookPlace place;
  Tensor output;  // (rows, d_model)
  /// output plus the sub-layer's input, normalised if the sub-layer ends with a norm. Only after
  /// dropout.
  Tensor sum = {};
};

/// A projection's output, as passed to a hook.
struct ProjectionOutput {
  HookPlace place;
  Tensor input;   // (rows, width in)
  Tensor output;  // (rows, width out) of the frozen projection
};

/// Keys and values placed before a layer's own: (K, length, width out) each.
struct Prefix {
  Tensor keys;
  Tensor values;
};

/// The interface that a backbone calls at its sites. Backbones depend only on hooks, not on
/// modules; modules depend only on hooks and carriers, not on the layers around them. The defaults
/// change nothing. after_dropout is called at sites for which acts_after_dropout is true, the
/// others at sites for which acts_on is true.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual bool acts_on(Site) const { return false; }
  virtual bool acts_after_dropout(Site) const { return false; }
  /// Receives the sub-layer's output before its dropout. Returns the replacement.
  virtual Tensor before_dropout(const SubLayerOutput& at) const { return at.output; }
  /// Receives the sub-layer's output after its dropout, before residual and norm. Returns what to
  /// add to it.
  virtual Tensor after_dropout(const SubLayerOutput& at) const { return at::zeros_like(at.output); }
  /// Returns the replacement of a projection's output.
  virtual Tensor projected(const ProjectionOutput& at) const { return at.output; }
  /// Returns keys and values to prepend in an attention.
  virtual std::optional<Prefix> prefix(const HookPlace& /*at*/) const { return std::nullopt; }
};

}  // namespace petlab::trainer
