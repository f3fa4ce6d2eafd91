#pragma once

#include <optional>

#include "trainer/compute/dropout.h"
#include "trainer/compute/layer_norm.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

// Operations on rows (rows, width) by petlab's kernels on x's device, in one pass each. Backward
// draws dropout again instead of storing it. All are differentiable in x, y and z, and return
// std::nullopt if the device has no kernels.

/// drop(x) + y, or drop(x) if y is undefined.
std::optional<Tensor> device_dropped(const Tensor& x, const Tensor& y, const DropoutPlace& place);

struct DeviceNormed {
  Tensor normed;   // norm((drop(x) + z) + y)
  Tensor dropped;  // drop(x); undefined unless wanted
};
/// `place` is nullptr for no dropout; z may be undefined. Also returns std::nullopt if the norm is
/// trained.
std::optional<DeviceNormed> device_normed(const Tensor& x, const Tensor& y, const Tensor& z,
                                          const LayerNorm& norm, const DropoutPlace* place,
                                          bool wants_dropped);

}  // namespace petlab::trainer
