#include "trainer/compute/rms_norm.h"

namespace petlab::trainer {

Tensor RmsNorm::operator()(const Tensor& x) const {
  return at::rms_norm(x, {weight.size(0)}, weight, eps);
}

}  // namespace petlab::trainer
