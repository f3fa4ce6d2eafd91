#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// A weight that an artifact stores for each layer, with its shape in one layer.
struct LayerWeight {
  std::string_view name;  // "down.weight"
  std::vector<std::int64_t> shape;
};

/// The weights of a kind with the given size (bottleneck, rank or prefix length), for a backbone
/// whose attention is as wide as its states. Empty for a kind without separate layers.
std::vector<LayerWeight> layer_weights(std::string_view kind, std::int64_t d_model,
                                       std::int64_t size);

}  // namespace petlab::trainer
