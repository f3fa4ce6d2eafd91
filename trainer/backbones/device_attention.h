#pragma once

#include <optional>
#include <vector>

#include "trainer/backbones/attention.h"
#include "trainer/compute/device_kernels.h"

namespace petlab::trainer {

/// The kernels that compute attention for this shape. nullptr if LibTorch's operations compute it:
/// the device has no kernels, the position bias needs a gradient, or `shape` has key rows or a
/// window.
DeviceKernels* kernels_for_attention(const AttentionShape& shape, at::Device device);

/// attention() by kernels that kernels_for_attention() returned. `rows` are query, key and value,
/// or one tensor that joins their columns. Sums are float32, or float64 for kDouble. std::nullopt
/// if a head's sums take more than 512 bytes, which the shared memory of a block cannot hold.
/// Differentiable.
std::optional<Tensor> device_attention(DeviceKernels& kernels, const std::vector<Tensor>& rows,
                                       const std::optional<Prefix>& prefix,
                                       const AttentionShape& shape, const Dropout* dropout);

}  // namespace petlab::trainer
