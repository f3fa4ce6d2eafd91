#pragma once

#include "trainer/backbones/attention.h"
#include "trainer/compute/device_kernels.h"

namespace petlab::trainer {

/// petlab's kernels for attention to such sequences; nullptr where it is left to LibTorch's
/// operations: the device has no kernels of ours, the bias of positions wants a gradient, or keys
/// are named by row.
DeviceKernels* attention_kernels(const AttentionShape& shape, at::Device device);

/// attention() by these kernels, whose blocks' shared memory holds heads of up to 512 bytes of
/// sums; std::nullopt for wider ones. Sums are float32, of kDouble float64. Differentiable.
std::optional<Tensor> attention_by_kernels(DeviceKernels& kernels, const Tensor& query,
                                           const Tensor& key, const Tensor& value,
                                           const std::optional<Prefix>& prefix,
                                           const AttentionShape& shape, const Dropout* dropout);

}  // namespace petlab::trainer
