#pragma once

#include <optional>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Starts a new peak of this process's memory on the device. First frees memory that is cached but
/// unused. Waits for the device. Does nothing on a CPU.
void begin_device_memory(at::Device device);

/// The peak since then, in MiB: the memory of LibTorch's allocator and, on a GPU, an allowance for
/// the driver's context. Does not wait. std::nullopt on a CPU, and if LibTorch (before 2.9) lacks
/// the interface for all kinds of devices.
std::optional<double> peak_device_memory_mib(at::Device device);

}  // namespace petlab::trainer
