#pragma once

#include "tests/trainer/device/pretend_device.h"

namespace petlab::testing {

/// The device of the tests in this folder: the pretend device, with PETLAB_TEST_DEVICE=kernels the
/// same with petlab's kernels, or with PETLAB_TEST_DEVICE=cuda a GPU. Cases tagged [pretend] are
/// for the first only, those tagged [counted] for the first two. Throws std::runtime_error if there
/// is no GPU.
at::Device tested_device();

/// True if device_counts() counts that device's work.
bool counts_what_is_tested();
/// True if it is the pretend device with petlab's kernels.
bool emulates_kernels();

/// (rows, width) of normal random numbers, on the host; each `number` has its own.
at::Tensor normal_rows(std::int64_t rows, std::int64_t width, std::uint64_t number);

}  // namespace petlab::testing
