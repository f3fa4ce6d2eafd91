#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// What a kernel's text is compiled for: the type of its numbers (kFloat, kDouble or kBFloat16),
/// and how many of them a head has.
struct KernelForm {
  at::ScalarType number = at::kFloat;
  std::int64_t d_head = 1;
  auto operator<=>(const KernelForm&) const = default;
};

/// Blocks of a launch, and threads of each.
struct KernelGrid {
  std::int64_t x = 1, y = 1, z = 1;
  int threads = 1;
};

/// petlab's own kernels on a device. Their text is in trainer/compute/kernels.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  /// Starts a kernel of kernels/FILE.cu on the current stream and does not wait for it. `arguments`
  /// points to what kernels/arguments.h says that it takes. A grid without blocks starts nothing.
  /// Throws c10::Error as LibTorch does where the device fails.
  virtual void launch(std::string_view file, const char* kernel, const KernelForm& form,
                      const KernelGrid& grid, const void* arguments) = 0;
};

/// The kernels of the device, opened by the first call; nullptr where it has none.
DeviceKernels* device_kernels(at::Device device);
/// Why device_kernels gives none for a GPU, in one line; std::nullopt where it gives some.
std::optional<std::string> why_no_kernels(at::Device device);

/// Where compiled kernels are kept for later processes, which saves each a second or two; empty
/// (the default): nowhere. To be said before the first call of device_kernels.
void keep_kernels_in(const std::filesystem::path& folder);
const std::filesystem::path& kernel_folder();

namespace internal {
/// From now on these are the kernels of devices of that type; nullptr: they have none. Not while
/// another thread computes.
void set_device_kernels(at::DeviceType type, DeviceKernels* kernels);
}  // namespace internal

}  // namespace petlab::trainer
