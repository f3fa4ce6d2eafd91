#pragma once

// A pretend accelerator, registered as LibTorch's PrivateUse1 device. The host cannot read or write
// memory at the addresses of its tensors; the CPU's kernels access it through another mapping.
// Mistakes that a CPU tolerates and a GPU does not fail here: a tensor left on the host, a device
// pointer read on the host, an operation that needs a value in the middle of a step.

#include <cstddef>
#include <cstdint>

#include "trainer/compute/torch.h"

namespace petlab::testing {

/// Counts of a device's work.
struct DeviceCounts {
  std::int64_t kernels = 0;
  std::int64_t copies_in = 0;         // from the host
  std::int64_t bytes_in = 0;          // of these copies
  std::int64_t copies_out = 0;        // to the host
  std::int64_t synchronisations = 0;  // waits of the host: for a value or for a copy, which
                                      // includes any copy from memory that is not page-locked
  std::int64_t fused_attentions = 0;  // calls of the kernel for packed sequences
};

/// The pretend device.
at::Device pretend_device();

/// The address at which the host can read this address of the device; nullptr for nullptr.
void* opened(void* place);

/// The counts since the program started, over all threads.
DeviceCounts device_counts();

/// The difference between two counts.
DeviceCounts counted(const DeviceCounts& before, const DeviceCounts& after);

/// Limits the device's memory; 0 removes the limit. Memory in use stays allocated.
void limit_device_memory(std::size_t bytes);

}  // namespace petlab::testing
