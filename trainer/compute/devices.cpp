#include "trainer/compute/devices.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace petlab::trainer {

namespace {

/// Whether the CUDA back end and the driver are installed. Only looks for the libraries: opening
/// the back end takes seconds.
bool may_have_cuda() {
  Dl_info cpu;
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &cpu) == 0) return false;
  const auto torch_folder = std::filesystem::path(cpu.dli_fname).parent_path();
  std::error_code error;
  if (!std::filesystem::exists(torch_folder / "libtorch_cuda.so", error)) return false;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

}  // namespace

std::vector<std::string> devices() {
  std::vector<std::string> all{"cpu"};
  if (may_have_cuda()) all.emplace_back("cuda");
  return all;
}

std::optional<std::string> why_not_on(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  if (device != "cuda") return "the device does not exist, expected cpu or cuda";
  static const std::optional<std::string> missing = internal::open_cuda("libtorch_cuda.so");
  return missing;
}

Placement placement_on(const std::string& device, bool bf16) {
  Placement placement;
  if (device == "cuda") {
    // The orchestrator makes only one GPU visible to a worker.
    placement.device = at::Device(at::kCUDA, 0);
    if (bf16) placement.compute = at::kBFloat16;
  } else {
    placement.short_products = bf16;
  }
  return placement;
}

namespace internal {

std::optional<std::string> open_cuda(const char* library) {
  // Never closed, because it has registered itself with LibTorch.
  if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* error = dlerror();
    const std::string why = error == nullptr ? library : error;
    if (why.rfind(library, 0) == 0) {
      return std::string("LibTorch is a CPU build without ") + library +
             "; if nvidia-smi works, install a CUDA build of torch (scripts/setup.sh does that)";
    }
    return "the CUDA back end of LibTorch cannot be opened: " + why +
           "; if nvidia-smi works, install the CUDA libraries of torch (scripts/setup.sh does "
           "that)";
  }
  if (!at::detail::getCUDAHooks().hasCUDART()) {
    return "LibTorch already ran without CUDA in this process: train on CPUs and GPUs in separate "
           "processes";
  }
  if (at::detail::getCUDAHooks().getNumGPUs() == 0) {
    return "LibTorch is a CUDA build, but finds no GPU: see nvidia-smi, and CUDA_VISIBLE_DEVICES";
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace petlab::trainer
