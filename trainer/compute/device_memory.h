#pragma once

#include <optional>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// From here on the most memory of the device that this process holds is counted anew, without what
/// is only kept for later. Waits for the device. On a CPU nothing.
void begin_device_memory(at::Device device);

/// The most since then, in MiB: what LibTorch's allocator held and, on a GPU, an allowance for the
/// driver's context beside it. Waits for nothing. std::nullopt on a CPU, and where LibTorch (before
/// 2.9) does not tell it of any device alike.
std::optional<double> peak_device_memory_mib(at::Device device);

}  // namespace petlab::trainer
