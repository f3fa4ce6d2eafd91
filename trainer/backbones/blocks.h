#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backbones/attention.h"
#include "trainer/backbones/backbone.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/hooks.h"
#include "trainer/backbones/packed_rows.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/layer_norm.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/placement.h"
#include "trainer/compute/product_weight.h"
#include "trainer/compute/random_stream.h"
#include "trainer/compute/rotary.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

// The blocks of encoder and decoder layers. Each block calls the module at its sites, so that a
// layer only arranges its blocks.

/// A weight (out, in) of the backbone and its bias (out), if it has one.
class Linear {
 public:
  Linear() = default;
  Linear(Tensor weight, Tensor bias, const Placement& placement);
  Tensor operator()(const Tensor& x) const;
  LinearLayer layer() const { return {weight_, bias_}; }

 private:
  ProductWeight weight_;
  Tensor bias_;
};

Tensor activate(const Tensor& x, Activation activation);

/// The state that all blocks of a forward pass share.
struct Pass {
  const Hooks& hooks;
  const Dropout* dropout = nullptr;  // nullptr outside training

  /// Applies dropout of the hidden rate to x (rows, width).
  Tensor drop(const Tensor& x, Purpose purpose, std::int64_t layer, const PackedRows& rows) const;
  /// Whether the hidden dropout rate is above 0 in this pass.
  bool drops() const;
  /// The place of a hidden dropout; only valid if drops().
  DropoutPlace place(Purpose purpose, std::int64_t layer, const PackedRows& rows) const;
  /// The projection of x after the module has changed it.
  Tensor changed_projection(Site site, std::int64_t layer, const Tensor& x, const Tensor& projected,
                            const PackedRows& rows) const;
};

/// The sites at which an attention calls the module.
struct AttentionSites {
  Site query = Site::query;
  Site value = Site::value;
  Site prefix = Site::keys_and_values;
};

/// The rows that an attention's queries come from, and the rows that they see.
struct AttentionInput {
  const Tensor& queries;  // (query rows, width in)
  const PackedRows& query_rows;
  const Tensor& keys;  // (key rows, width in)
  const PackedRows& key_rows;
  AttentionShape shape;
  AttentionSites sites = {};
  /// Turn the queries and keys, once the module has changed them; nullptr: no rotary positions.
  const Rotary* query_rotary = nullptr;
  const Rotary* key_rotary = nullptr;
};

/// On a device, puts frozen weights of one shape into one tensor, one after another, and replaces
/// them by its parts. Returns that tensor; undefined on a CPU, or if one of them is trained.
Tensor join_weights(Backbone::Weights& weights, const std::vector<std::string>& names);

/// An attention with its projections and output projection.
struct AttentionBlock {
  Linear query, key, value, output;
  /// Query, key and value in one product. Absent unless join_weights joined them.
  std::optional<Linear> joined = std::nullopt;
  Tensor operator()(const Pass& pass, const AttentionInput& in) const;
};

/// Two projections with an activation in between. T5 1.1 and ModernBERT multiply it by a third
/// projection.
struct FeedForwardBlock {
  Linear inner, output;
  Activation activation = Activation::gelu;
  std::optional<Linear> gate = std::nullopt;
  bool inner_dropout = false;  // before the output projection
  Tensor operator()(const Pass& pass, std::int64_t layer, const Tensor& x,
                    const PackedRows& rows) const;
};

/// The site, dropout and norm at the end of a sub-layer.
struct SubLayerEnd {
  Site site = Site::feed_forward_output;
  std::int64_t layer = 0;
  Purpose dropout = Purpose::feed_forward_output_dropout;
  const LayerNorm* norm = nullptr;  // applied to output + residual, for post-norm layers
};

/// Applies the module's hooks and dropout to `sub_layer_output`, adds `residual`, and normalises it
/// if `end` has a norm.
Tensor close_sub_layer(const Pass& pass, const SubLayerEnd& end, const Tensor& sub_layer_output,
                       const Tensor& residual, const PackedRows& rows);

}  // namespace petlab::trainer
