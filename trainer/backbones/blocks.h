#pragma once

#include <cstdint>
#include <optional>

#include "trainer/backbones/attention.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/hooks.h"
#include "trainer/backbones/packed_rows.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/layer_norm.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/placement.h"
#include "trainer/compute/product_weight.h"
#include "trainer/compute/random_stream.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

// What the layers of encoders and decoders are made of: each calls the module at its sites, so that
// a layer is nothing but the order of its blocks.

/// A weight (out, in) of the backbone, with its bias (out) where it has one.
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

/// What the blocks of one forward pass share.
struct Pass {
  const Hooks& hooks;
  const Dropout* dropout = nullptr;  // nullptr outside training

  /// x (rows, width) with dropout of the hidden rate.
  Tensor drop(const Tensor& x, Purpose purpose, std::int64_t layer, const PackedRows& rows) const;
  /// Whether anything has dropout of the hidden rate.
  bool drops() const;
  /// Such a dropout; only where drops().
  DropoutPlace place(Purpose purpose, std::int64_t layer, const PackedRows& rows) const;
  /// The projection of x with what the module makes of it.
  Tensor changed_projection(Site site, std::int64_t layer, const Tensor& x, const Tensor& projected,
                            const PackedRows& rows) const;
};

/// Where an attention calls the module.
struct AttentionSites {
  Site query = Site::query;
  Site value = Site::value;
  Site prefix = Site::keys_and_values;
};

/// Rows that attention asks for and those that it sees.
struct AttentionInput {
  const Tensor& queries;  // (query rows, width in)
  const PackedRows& query_rows;
  const Tensor& keys;  // (key rows, width in)
  const PackedRows& key_rows;
  AttentionShape shape;
  AttentionSites sites = {};
};

/// Projections, attention, output projection.
struct AttentionBlock {
  Linear query, key, value, output;
  Tensor operator()(const Pass& pass, const AttentionInput& in) const;
};

/// Two projections with an activation between them, which T5 1.1 multiplies by a third.
struct FeedForwardBlock {
  Linear inner, output;
  Activation activation = Activation::gelu;
  std::optional<Linear> gate = std::nullopt;
  bool inner_dropout = false;  // before the output projection
  Tensor operator()(const Pass& pass, std::int64_t layer, const Tensor& x,
                    const PackedRows& rows) const;
};

/// How a sub-layer ends.
struct SubLayerEnd {
  Site site = Site::feed_forward_output;
  std::int64_t layer = 0;
  Purpose dropout = Purpose::feed_forward_output_dropout;
  const LayerNorm* norm = nullptr;  // on output + residual, where it follows (post-norm)
};

/// `output` with the module's hooks and dropout, plus `residual`, normalised where `end` says so.
Tensor close_sub_layer(const Pass& pass, const SubLayerEnd& end, const Tensor& output,
                       const Tensor& residual, const PackedRows& rows);

}  // namespace petlab::trainer
