#include "trainer/compute/layer_norm.h"

namespace petlab::trainer {

Tensor LayerNorm::operator()(const Tensor& x) const {
  return at::layer_norm(x, {weight.size(0)}, weight, bias, eps);
}

}  // namespace petlab::trainer
