#pragma once

#include "trainer/compute/device_kernels.h"

namespace petlab::testing {

/// petlab's kernels on the pretend device: their text, compiled by the host's compiler. The threads
/// of a block are fibers that change at barriers and shuffles and nowhere else. Which of them comes
/// first is drawn anew after each, so that threads that race give other numbers from run to run.
trainer::DeviceKernels& emulated_kernels();

/// Launches since the program started.
std::int64_t emulated_launches();

}  // namespace petlab::testing
