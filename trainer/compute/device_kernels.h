#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The parameters that a kernel is compiled for: the type of its numbers (kFloat, kDouble or
/// kBFloat16) and a size: the width of a head for attention, rows_size() for rows.
struct KernelForm {
  at::ScalarType number = at::kFloat;
  std::int64_t size = 1;
  auto operator<=>(const KernelForm&) const = default;
};

/// The blocks of a launch, and the threads of a block.
struct KernelGrid {
  std::int64_t x = 1, y = 1, z = 1;
  int threads = 1;
};

/// Names the kernels in a trial's numerics. Changes when they round differently.
inline constexpr const char* kKernelsVersion = "petlab 2";

/// petlab's own kernels on a device. Their text is in trainer/compute/kernels.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  /// Starts a kernel of kernels/FILE.cu on the current stream and does not wait for it. `arguments`
  /// points to the kernel's struct of kernels/arguments.h. An empty grid starts nothing. Throws
  /// c10::Error, like LibTorch, if the device fails.
  virtual void launch(std::string_view file, const char* kernel, const KernelForm& form,
                      const KernelGrid& grid, const void* arguments) = 0;
};

/// The device's kernels, opened by the first call; nullptr if it has none.
DeviceKernels* device_kernels(at::Device device);
/// One line why device_kernels() returns nullptr for a GPU; std::nullopt if it returns kernels.
std::optional<std::string> why_no_kernels(at::Device device);

/// Sets the folder that keeps compiled kernels for later processes, which saves each of them about
/// two seconds. Empty, the default: none. Call it before device_kernels().
void keep_kernels_in(const std::filesystem::path& folder);
const std::filesystem::path& kernel_folder();

namespace internal {
/// Replaces the kernels of all devices of a type; nullptr removes them. Not thread-safe.
void set_device_kernels(at::DeviceType type, DeviceKernels* kernels);
}  // namespace internal

}  // namespace petlab::trainer
