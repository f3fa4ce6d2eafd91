#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/compute/placement.h"

namespace petlab::trainer {

/// The devices that trials can be trained on, in the words of trial.json: what `--describe` lists.
/// `cuda` where LibTorch's CUDA back end and the GPU's driver are there, which are not opened for
/// it: why_not_on may find more to say.
std::vector<std::string> devices();

/// A device cannot be used, which says nothing about the trial: another device may train it.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why a trial cannot be trained on `device`, in one line that says what is missing and how to get
/// it; std::nullopt where it can. For `cuda` LibTorch's CUDA back end is opened, which this program
/// is not linked with: a process that only uses the CPU neither needs nor loads it. Call it before
/// the first computation with gradients: LibTorch checks only once whether it has CUDA.
std::optional<std::string> why_not_on(const std::string& device);

/// How a trial is placed on a device that why_not_on has nothing against. `bf16`: its backbone's
/// matrices are kept and multiplied in bfloat16; on a GPU it computes in it throughout.
Placement placement_on(const std::string& device, bool bf16 = false);

namespace internal {
/// Opens the CUDA back end, a shared library of that name. What is missing where there is nothing
/// to compute on then.
std::optional<std::string> open_cuda(const char* library);
}  // namespace internal

}  // namespace petlab::trainer
