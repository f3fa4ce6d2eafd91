#include "tests/trainer/device/pretend_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

namespace petlab::testing {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr std::size_t kMemory = std::size_t{1} << 30;  // of addresses: what is not used costs none

struct Counters {
  std::atomic<std::int64_t> kernels{0}, copies_in{0}, copies_out{0}, synchronisations{0};
};
Counters& counters() {
  static Counters all;
  return all;
}

/// The device's memory. It is mapped twice: where tensors say that it lies nobody can read or
/// write, and the kernels know the other place.
class Memory {
 public:
  static Memory& instance() {
    static auto* const only = new Memory;  // tensors may outlive what is static
    return *only;
  }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = room_for(bytes);
    std::size_t at = used_;
    if (const auto found = free_.find(size); found != free_.end()) {
      at = found->second;
      free_.erase(found);
    } else {
      used_ += size;
      if (used_ > kMemory) throw std::runtime_error("the pretend device has no memory left");
    }
    std::memset(open_ + at, 0xFF, size);  // no number: who reads what nobody wrote will see
    return closed_ + at;
  }
  void give_back(void* place, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_.emplace(room_for(bytes), static_cast<std::size_t>(static_cast<char*>(place) - closed_));
  }
  /// Where a kernel finds what lies at `place`.
  void* opened(void* place) const { return open_ + (static_cast<char*>(place) - closed_); }

 private:
  Memory() {
    const int file = ::memfd_create("pretend device", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(kMemory)) != 0) {
      throw std::runtime_error("no memory for the pretend device");
    }
    closed_ = mapped(file, PROT_NONE);
    open_ = mapped(file, PROT_READ | PROT_WRITE);
    ::close(file);
  }
  static char* mapped(int file, int how) {
    void* const made = ::mmap(nullptr, kMemory, how, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (made == MAP_FAILED) throw std::runtime_error("no addresses for the pretend device");
    return static_cast<char*>(made);
  }
  /// Of few sizes, so that what is given back is taken again.
  static std::size_t room_for(std::size_t bytes) {
    return std::bit_ceil(std::max<std::size_t>(64, bytes));
  }

  std::mutex mutex_;
  char* closed_ = nullptr;
  char* open_ = nullptr;
  std::size_t used_ = 0;
  std::multimap<std::size_t, std::size_t> free_;  // size -> where
};

struct Block {
  void* place;
  std::size_t bytes;
};
void delete_block(void* context) {
  auto* const block = static_cast<Block*>(context);
  Memory::instance().give_back(block->place, block->bytes);
  delete block;
}

struct PretendAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const block = new Block{Memory::instance().take(bytes), bytes};
    return {block->place, block, &delete_block, c10::Device(kType, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const Memory& memory = Memory::instance();
    std::memcpy(memory.opened(to), memory.opened(const_cast<void*>(from)), bytes);
  }
};

struct PretendGuard final : c10::impl::NoOpDeviceGuardImpl<kType> {
  c10::Device exchangeDevice(c10::Device) const override { return c10::Device(kType, 0); }
  c10::Device getDevice() const override { return c10::Device(kType, 0); }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kType, 0));
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return getStream({kType, 0}); }
  void synchronizeStream(const c10::Stream&) const override { ++counters().synchronisations; }
};

struct PretendHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, c10::GetAllocator(kType),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(kType),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

/// The same elements as a tensor of the CPU: for a kernel.
at::Tensor seen_by_cpu(const at::Tensor& tensor) {
  if (!is_here(tensor)) return tensor;
  return at::from_blob(Memory::instance().opened(tensor.mutable_data_ptr()), tensor.sizes(),
                       tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor brought_here(const at::Tensor& made) {
  if (!made.defined() || is_here(made)) return made;
  at::Tensor own = empty_strided(made.sizes(), made.strides(), made.scalar_type(), {}, {}, {});
  seen_by_cpu(own).copy_(made);
  return own;
}

/// Makes an empty tensor of the device what a kernel made in its place.
void take_over(const at::Tensor& ours, const at::Tensor& made) {
  if (ours.numel() > 0 || made.numel() == 0) return;
  const at::Tensor own = brought_here(made);
  ours.unsafeGetTensorImpl()->set_storage_keep_dtype(own.storage());
  ours.unsafeGetTensorImpl()->set_sizes_and_strides(own.sizes(), own.strides());
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!is_here(to)) {
    ++counters().copies_out;
    ++counters().synchronisations;
  } else if (!is_here(from)) {
    ++counters().copies_in;
    // The host waits until its memory has been read.
    if (!non_blocking) ++counters().synchronisations;
  } else {
    ++counters().kernels;
  }
  seen_by_cpu(to).copy_(seen_by_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  TORCH_CHECK(from.sizes() == to.sizes(), "the pretend device resizes nothing");
  return copy_from(from, to, false);
}

at::Scalar value_of(const at::Tensor& tensor) {
  ++counters().copies_out;
  ++counters().synchronisations;
  return seen_by_cpu(tensor).item();
}

/// Whether a GPU would take an argument that is on the host.
bool host_may_give(const std::string& operation, const at::Tensor& tensor) {
  return tensor.dim() == 0 || operation == "aten::index.Tensor" ||
         operation == "aten::_index_put_impl_" || operation == "aten::index_put_";
}

/// Every other operation: the CPU's kernel, in this device's memory.
void run_kernel(const c10::OperatorHandle& operation, c10::DispatchKeySet,
                torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = operation.schema();
  const std::string name =
      schema.name() +
      (schema.overload_name().empty() ? std::string() : "." + schema.overload_name());
  const std::size_t first = stack->size() - schema.arguments().size();
  const std::vector<c10::IValue> given(stack->begin() + static_cast<std::ptrdiff_t>(first),
                                       stack->end());
  bool any_here = false;
  const auto each = [&](const auto& visit) {
    for (const c10::IValue& value : given) {
      if (value.isTensor()) visit(value.toTensor());
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
      }
      if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
          if (tensor) visit(*tensor);
        }
      }
    }
  };
  each([&](const at::Tensor& tensor) { any_here = any_here || is_here(tensor); });
  each([&](const at::Tensor& tensor) {
    TORCH_CHECK(!any_here || !tensor.defined() || is_here(tensor) || host_may_give(name, tensor),
                name, ": tensors on the pretend device and on the CPU, of shape ", tensor.sizes());
  });
  ++counters().kernels;
  for (std::size_t i = 0; i < given.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (value.isTensor()) {
      const at::Tensor& tensor = given[i].toTensor();
      // An empty one that is written to takes the size of what is made.
      const bool made = is_here(tensor) && tensor.numel() == 0;
      value =
          made ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU)) : seen_by_cpu(tensor);
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> all;
      for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(seen_by_cpu(tensor));
      value = c10::List<at::Tensor>(all);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        all.push_back(tensor ? std::optional(seen_by_cpu(*tensor)) : std::nullopt);
      }
      value = all;
    } else if (value.isDevice()) {
      value = c10::Device(at::kCPU);
    }
  }
  operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const std::size_t results = schema.returns().size();
  const std::size_t from = stack->size() - results;
  for (std::size_t r = 0; r < results; ++r) {
    c10::IValue& value = (*stack)[from + r];
    const c10::AliasInfo* const alias = schema.returns()[r].alias_info();
    if (alias == nullptr) {
      if (value.isTensor()) {
        value = brought_here(value.toTensor());
      } else if (value.isTensorList()) {
        std::vector<at::Tensor> all;
        for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(brought_here(tensor));
        value = c10::List<at::Tensor>(all);
      }
      continue;
    }
    TORCH_CHECK(alias->isWrite(), name, ": a view that the pretend device does not know");
    // What was written to is what comes back.
    for (std::size_t i = 0; i < given.size(); ++i) {
      const c10::AliasInfo* const own = schema.arguments()[i].alias_info();
      if (own != nullptr && *own == *alias) {
        if (given[i].isTensor()) take_over(given[i].toTensor(), value.toTensor());
        value = given[i];
      }
    }
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(value_of));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_kernel>());
}

PretendAllocator allocator;
const PretendGuard guard;
[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(kType, &allocator);
  at::RegisterPrivateUse1HooksInterface(new PretendHooks);
  c10::register_privateuse1_backend("pretend");
  return true;
}();
[[maybe_unused]] const c10::impl::DeviceGuardImplRegistrar guarded(kType, &guard);

}  // namespace

at::Device pretend_device() { return at::Device(kType, 0); }

DeviceCounts device_counts() {
  const Counters& now = counters();
  return {now.kernels, now.copies_in, now.copies_out, now.synchronisations};
}

DeviceCounts counted(const DeviceCounts& before, const DeviceCounts& after) {
  return {after.kernels - before.kernels, after.copies_in - before.copies_in,
          after.copies_out - before.copies_out, after.synchronisations - before.synchronisations};
}

}  // namespace petlab::testing
