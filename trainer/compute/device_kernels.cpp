#include "trainer/compute/device_kernels.h"

#include <map>
#include <memory>

#include "trainer/compute/cuda_kernels.h"
#include "trainer/compute/error_text.h"

namespace petlab::trainer {
namespace {

struct Opened {
  std::unique_ptr<DeviceKernels> kernels;
  std::string why_not;
};

const Opened& cuda_opened() {
  static const Opened opened = [] {
    Opened result;
    try {
      result.kernels = open_cuda_kernels();
    } catch (const std::exception& error) {
      result.why_not = message_of(error);
    }
    return result;
  }();
  return opened;
}

std::map<at::DeviceType, DeviceKernels*>& given() {
  static std::map<at::DeviceType, DeviceKernels*> all;
  return all;
}

std::filesystem::path& kept_in() {
  static std::filesystem::path folder;
  return folder;
}

}  // namespace

void keep_kernels_in(const std::filesystem::path& folder) { kept_in() = folder; }
const std::filesystem::path& kernel_folder() { return kept_in(); }

DeviceKernels* device_kernels(at::Device device) {
  if (device.is_cpu()) return nullptr;
  if (const auto found = given().find(device.type()); found != given().end()) return found->second;
  return device.is_cuda() ? cuda_opened().kernels.get() : nullptr;
}

std::optional<std::string> why_no_kernels(at::Device device) {
  if (device_kernels(device) != nullptr || !device.is_cuda()) return std::nullopt;
  return cuda_opened().why_not;
}

void internal::set_device_kernels(at::DeviceType type, DeviceKernels* kernels) {
  given()[type] = kernels;
}

}  // namespace petlab::trainer
