#pragma once

#include "trainer/compute/device_kernels.h"

namespace petlab::testing {

/// petlab's kernels on the pretend device: their text, compiled by the host's compiler. The threads
/// of a block are fibers that switch only at barriers and shuffles. Their order is random and
/// changes after each barrier, so a race changes the results from run to run.
trainer::DeviceKernels& emulated_kernels();

/// Launches since the program started.
std::int64_t emulated_launches();

}  // namespace petlab::testing
