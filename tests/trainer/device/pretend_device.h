#pragma once

// An accelerator that is none: LibTorch's PrivateUse1 device, in memory that the host can neither
// read nor write where tensors say that it lies; the kernels are the CPU's, and know another way.
// What a CPU forgives and a GPU does not ends here with an error or a fault: a tensor that was left
// on the host, a pointer that is read there, an operation that asks for a value in the middle of a
// step.

#include <cstddef>
#include <cstdint>

#include "trainer/compute/torch.h"

namespace petlab::testing {

/// What the device was asked for.
struct DeviceCounts {
  std::int64_t kernels = 0;
  std::int64_t copies_in = 0;         // from the host
  std::int64_t bytes_in = 0;          // of them
  std::int64_t copies_out = 0;        // to the host
  std::int64_t synchronisations = 0;  // the host waited: for a value, or for a copy, which it also
                                      // does where its memory is not page-locked
  std::int64_t fused_attentions = 0;  // calls of the kernel for packed sequences
};

/// The device, put in place by the first call.
at::Device pretend_device();

/// The address at which the host can read this address of the device; nullptr for nullptr.
void* opened(void* place);

/// Since the program started, on all threads.
DeviceCounts device_counts();

/// What was counted from `before` to `after`.
DeviceCounts counted(const DeviceCounts& before, const DeviceCounts& after);

/// From now on no more of the device's memory is given; 0: all that there is. What is held stays.
void limit_device_memory(std::size_t bytes);

}  // namespace petlab::testing
