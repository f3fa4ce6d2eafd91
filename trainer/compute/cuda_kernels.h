#pragma once

#include <memory>

#include "trainer/compute/device_kernels.h"

namespace petlab::trainer {

/// Kernels compiled by NVRTC, which LibTorch's CUDA builds bring along, for the GPU that this
/// process sees first. Neither CUDA's headers nor its compiler are needed. Throws
/// std::runtime_error, in one line, where a part is missing or the first kernel does not compute
/// what it should.
std::unique_ptr<DeviceKernels> open_cuda_kernels();

}  // namespace petlab::trainer
