#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/compute/placement.h"

namespace petlab::trainer {

/// The devices that trials can be trained on, by their names in trial.json, as `--describe` lists
/// them. `cuda` is included if LibTorch's CUDA back end and the GPU's driver are installed. They
/// are not opened here, so why_not_on may still find a problem.
std::vector<std::string> devices();

/// A device cannot be used. The trial is not at fault: another device may train it.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Explains in one line why trials cannot be trained on `device` and how to fix it; std::nullopt if
/// they can. For `cuda`, opens LibTorch's CUDA back end, which this program is not linked with:
/// processes that use only the CPU need not load it. Call it before the first computation with
/// gradients, because LibTorch checks only once whether it has CUDA.
std::optional<std::string> why_not_on(const std::string& device);

/// The placement of a trial on a device that why_not_on accepts. With `bf16`, the backbone's
/// matrices are stored and multiplied in bfloat16; on a GPU, all of its computation is in bfloat16.
Placement placement_on(const std::string& device, bool bf16 = false);

namespace internal {
/// Opens the CUDA back end, a shared library of that name. If there is nothing to compute on,
/// returns what is missing.
std::optional<std::string> open_cuda(const char* library);
}  // namespace internal

}  // namespace petlab::trainer
