#pragma once

#include "tests/trainer/device/pretend_device.h"

namespace petlab::testing {

/// The device that the tests of this folder compute on: the pretend one, with
/// PETLAB_TEST_DEVICE=kernels the same with petlab's kernels, or with PETLAB_TEST_DEVICE=cuda a
/// GPU. The cases tagged [pretend] only mean the first. Throws std::runtime_error where there is no
/// GPU.
at::Device tested_device();

/// Whether device_counts() counts what that device does.
bool counts_what_is_tested();

}  // namespace petlab::testing
