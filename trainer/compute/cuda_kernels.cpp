#include "trainer/compute/cuda_kernels.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "trainer/compute/devices.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/dropout_draws.h"
#include "trainer/compute/kernel_texts.h"
#include "trainer/compute/kernels/arguments.h"

namespace petlab::trainer {
namespace {

/// Loads functions of a shared library by name.
class Library {
 public:
  explicit Library(const char* name) : name_(name), handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* const error = dlerror();
      throw std::runtime_error(error == nullptr ? name_ + " cannot be opened" : error);
    }
  }
  template <typename Function>
  void get(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(name_ + " has no function " + name);
  }

 private:
  std::string name_;
  void* handle_;  // never closed
};

/// Functions of NVRTC. They return 0 on success.
struct Compiler {
  using Program = struct ProgramOfNvrtc*;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const*,
                const char* const*);
  int (*compile)(Program, int options, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*destroy)(Program*);
  int (*version)(int* major, int* minor);

  Compiler() {
    // This part of LibTorch is linked with the NVRTC of its CUDA version.
    const Library library("libcaffe2_nvrtc.so");
    library.get(create, "nvrtcCreateProgram");
    library.get(compile, "nvrtcCompileProgram");
    library.get(log_size, "nvrtcGetProgramLogSize");
    library.get(log, "nvrtcGetProgramLog");
    library.get(cubin_size, "nvrtcGetCUBINSize");
    library.get(cubin, "nvrtcGetCUBIN");
    library.get(destroy, "nvrtcDestroyProgram");
    library.get(version, "nvrtcVersion");
  }

  /// Compiles to machine code. Throws std::runtime_error with the first line of the compiler's log.
  std::string machine_code(const std::string& text, const std::vector<std::string>& options) const {
    Program program = nullptr;
    if (create(&program, text.c_str(), "petlab.cu", 0, nullptr, nullptr) != 0) {
      throw std::runtime_error("NVRTC takes no program");
    }
    const std::unique_ptr<Program, int (*)(Program*)> freed(&program, destroy);
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    std::size_t size = 0;
    if (compile(program, static_cast<int>(words.size()), words.data()) != 0) {
      std::string message = "no reason given";
      if (log_size(program, &size) == 0 && size > 1) {
        message.resize(size);
        log(program, message.data());
      }
      throw std::runtime_error("NVRTC: " + message.substr(0, message.find('\n')));
    }
    if (cubin_size(program, &size) != 0 || size == 0) {
      throw std::runtime_error("NVRTC cannot generate code for this GPU");
    }
    std::string code(size, '\0');
    if (cubin(program, code.data()) != 0) throw std::runtime_error("NVRTC returned no code");
    return code;
  }
};

/// Functions of the driver. They return 0 on success.
struct Driver {
  using Context = struct ContextOfCuda*;
  using Module = struct ModuleOfCuda*;
  using Kernel = struct KernelOfCuda*;
  int (*device)(int*, int number);
  int (*attribute)(int*, int attribute, int device);
  int (*retain)(Context*, int device);
  int (*current)(Context*);
  int (*set_current)(Context);
  int (*load)(Module*, const void* code);
  int (*kernel)(Kernel*, Module, const char* name);
  int (*start)(Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
               void* stream, void** arguments, void** extra);
  int (*error_name)(int, const char**);

  Driver() {
    const Library library("libcuda.so.1");
    library.get(device, "cuDeviceGet");
    library.get(attribute, "cuDeviceGetAttribute");
    library.get(retain, "cuDevicePrimaryCtxRetain");
    library.get(current, "cuCtxGetCurrent");
    library.get(set_current, "cuCtxSetCurrent");
    library.get(load, "cuModuleLoadData");
    library.get(kernel, "cuModuleGetFunction");
    library.get(start, "cuLaunchKernel");
    library.get(error_name, "cuGetErrorName");
  }

  void check(int error, const char* what) const {
    if (error == 0) return;
    const char* name = nullptr;
    error_name(error, &name);
    throw DeviceError(std::string("CUDA error: ") + what + ": " +
                      (name == nullptr ? "unknown" : name));
  }
};

std::string_view text_of(std::string_view name) {
  for (const KernelText& file : kernel_texts()) {
    if (file.name == name) return file.text;
  }
  throw std::logic_error("no such kernel file: " + std::string(name));
}

class CudaKernels : public DeviceKernels {
 public:
  CudaKernels() {
    constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
    int device = 0, major = 0, minor = 0;
    driver_.check(driver_.device(&device, 0), "no device");
    driver_.check(driver_.attribute(&major, kMajor, device), "no compute capability");
    driver_.check(driver_.attribute(&minor, kMinor, device), "no compute capability");
    architecture_ = "sm_" + std::to_string(major) + std::to_string(minor);
    driver_.check(driver_.retain(&context_, device), "no context");
  }

  void launch(std::string_view file, const char* name, const KernelForm& form,
              const KernelGrid& grid, const void* arguments) override {
    if (grid.x <= 0 || grid.y <= 0 || grid.z <= 0) return;
    // Autograd's threads may not have a context yet.
    Driver::Context current = nullptr;
    driver_.check(driver_.current(&current), "no context");
    if (current == nullptr) driver_.check(driver_.set_current(context_), "no context");
    const c10::impl::DeviceGuardImplInterface* const guard =
        c10::impl::getDeviceGuardImpl(at::kCUDA);
    void* const stream = guard->getStream(at::Device(at::kCUDA, 0)).native_handle();
    void* parameters[] = {const_cast<void*>(arguments)};
    const auto size = [](std::int64_t of) { return static_cast<unsigned>(of); };
    driver_.check(driver_.start(kernel(file, name, form), size(grid.x), size(grid.y), size(grid.z),
                                size(grid.threads), 1, 1, 0, stream, parameters, nullptr),
                  name);
  }

 private:
  Driver::Kernel kernel(std::string_view file, const char* name, const KernelForm& form) {
    const std::lock_guard lock(mutex_);
    Driver::Kernel& found = kernels_[{std::string(name), form}];
    if (found == nullptr) {
      Driver::Module& module = modules_[{std::string(file), form}];
      if (module == nullptr) module = loaded(file, form);
      driver_.check(driver_.kernel(&found, module, name), name);
    }
    return found;
  }

  /// Loads the kernels from the cache, or compiles and caches them.
  Driver::Module loaded(std::string_view file, const KernelForm& form) const {
    std::string text;
    for (const char* const before : {"arguments.h", "prelude.cu"}) text += text_of(before);
    text += text_of(std::string(file) + ".cu");
    const char* const number = form.number == at::kDouble     ? "DOUBLE"
                               : form.number == at::kBFloat16 ? "BFLOAT16"
                                                              : "FLOAT";
    const std::vector<std::string> options{"--gpu-architecture=" + architecture_, "--std=c++17",
                                           "-default-device", std::string("-DNUMBER_") + number,
                                           "-DSIZE=" + std::to_string(form.size)};
    Driver::Module module = nullptr;
    const std::filesystem::path kept = place_of(text, options);
    if (const auto code = kept_code(kept); code && driver_.load(&module, code->data()) == 0) {
      return module;
    }
    const std::string code = compiler_.machine_code(text, options);
    driver_.check(driver_.load(&module, code.data()), "no module");
    keep(kept, code);
    return module;
  }

  std::filesystem::path place_of(const std::string& text,
                                 const std::vector<std::string>& options) const {
    if (kernel_folder().empty()) return {};
    int major = 0, minor = 0;
    compiler_.version(&major, &minor);
    std::string all = std::to_string(major) + "." + std::to_string(minor) + "\n";
    for (const std::string& option : options) all += option + "\n";
    const std::string digest = base::sha256(all + text);
    return kernel_folder() / (digest.substr(digest.find(':') + 1) + ".cubin");
  }

  /// If the cache cannot be read or written, the kernels are compiled in each process.
  static std::optional<std::string> kept_code(const std::filesystem::path& file) {
    constexpr std::uintmax_t kLargest = 1U << 24U;
    try {
      if (!file.empty()) return base::read_file_if_any(file, kLargest);
    } catch (const base::Error&) {
    }
    return std::nullopt;
  }
  static void keep(const std::filesystem::path& file, const std::string& code) {
    try {
      if (file.empty()) return;
      std::filesystem::create_directories(file.parent_path());
      base::write_file_atomically(file, code);
    } catch (const base::Error&) {
    } catch (const std::filesystem::filesystem_error&) {
    }
  }

  Driver driver_;
  Compiler compiler_;
  std::string architecture_;
  Driver::Context context_ = nullptr;
  std::mutex mutex_;
  std::map<std::pair<std::string, KernelForm>, Driver::Module> modules_;
  std::map<std::pair<std::string, KernelForm>, Driver::Kernel> kernels_;
};

}  // namespace

std::unique_ptr<DeviceKernels> open_cuda_kernels() {
  auto opened = std::make_unique<CudaKernels>();
  // Dropout's bits are known in advance, so drawing some tests the compiler, the launch and the
  // arguments.
  const at::Device device(at::kCUDA, 0);
  const std::vector<RowKey> rows{{0, 3, 1}, {0, 5, 0}, {0, 0xFFFFFFFF, 77}};
  Dropout dropout;
  dropout.step = 7;
  dropout.seeds = {0xFEDCBA9876543210};
  const DrawnPlace place{Purpose::final_dropout, 0};
  constexpr std::int64_t width = 20;
  constexpr double p = 0.3;
  DropoutDraws draws(rows, {{place}}, device);
  const Tensor found =
      draws.drawn_by(*opened, dropout, std::span(&place, 1), p, width).to(at::kCPU);
  const Tensor wanted =
      dropout_multipliers({dropout, p, place.purpose, place.layer, rows}, width, at::kFloat).ne(0);
  if (!found.view(wanted.sizes()).equal(wanted)) {
    throw std::runtime_error("petlab's kernel for dropout computes other numbers on this GPU");
  }
  return opened;
}

}  // namespace petlab::trainer
