#pragma once

#include <memory>

#include "trainer/compute/device_kernels.h"

namespace petlab::trainer {

/// Compiles kernels with NVRTC, which comes with LibTorch's CUDA builds, for the process's first
/// GPU. Needs neither CUDA's headers nor its compiler. Throws std::runtime_error with one line if a
/// library is missing or the test kernel computes wrong numbers.
std::unique_ptr<DeviceKernels> open_cuda_kernels();

}  // namespace petlab::trainer
