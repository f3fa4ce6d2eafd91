#include "trainer/compute/layer_norm.h"

#include <optional>

namespace petlab::trainer {

Tensor LayerNorm::operator()(const Tensor& x) const {
  const std::optional<Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
  return at::layer_norm(x, {weight.size(0)}, weight, added, eps);
}

}  // namespace petlab::trainer
