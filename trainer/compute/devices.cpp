#include "trainer/compute/devices.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <algorithm>

namespace petlab::trainer {

std::vector<std::string> devices() { return {"cpu"}; }

std::optional<std::string> why_not_on(const std::string& device) {
  const std::vector<std::string> known = devices();
  if (std::find(known.begin(), known.end(), device) != known.end()) return std::nullopt;
  if (device != "cuda") return "there is no such device; wanted cpu or cuda";
  static const std::optional<std::string> missing = internal::open_cuda("libtorch_cuda.so");
  if (missing) return missing;
  return "this petlab-trainer trains on the CPU alone (--device cpu)";
}

Placement placement_on(const std::string& device) {
  Placement placement;
  placement.device = at::Device(device);
  return placement;
}

namespace internal {

std::optional<std::string> open_cuda(const char* library) {
  // Never closed: it has registered itself with LibTorch.
  if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* said = dlerror();
    const std::string why = said == nullptr ? library : said;
    if (why.rfind(library, 0) == 0) {
      return std::string("LibTorch is a CPU build, without ") + library +
             "; where nvidia-smi works, scripts/setup.sh takes a CUDA build";
    }
    return "the CUDA back end of LibTorch cannot be opened: " + why +
           "; where nvidia-smi works, scripts/setup.sh installs what it needs";
  }
  if (at::detail::getCUDAHooks().getNumGPUs() == 0) {
    return "LibTorch is a CUDA build, but finds no GPU: see nvidia-smi, and CUDA_VISIBLE_DEVICES";
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace petlab::trainer
