#include "tests/trainer/device/pretend_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "tests/trainer/device/tested_device.h"

namespace petlab::testing {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr std::size_t kMemory = std::size_t{1} << 30;  // address space; unused pages cost nothing

struct Counters {
  std::atomic<std::int64_t> kernels{0}, copies_in{0}, bytes_in{0}, copies_out{0};
  std::atomic<std::int64_t> synchronisations{0}, fused_attentions{0};
};
Counters& counters() {
  static Counters all;
  return all;
}

/// The device's memory. It is mapped twice: tensors have addresses that cannot be read or written,
/// and kernels use the other mapping.
class Memory {
 public:
  static Memory& instance() {
    static auto* const only = new Memory;  // never freed: tensors may outlive static objects
    return *only;
  }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = room_for(bytes);
    std::size_t at = used_;
    if (const auto found = cached_.find(size); found != cached_.end()) {
      at = found->second;
      cached_.erase(found);
    } else {
      const auto held = static_cast<std::size_t>(held_.current);
      TORCH_CHECK_WITH(OutOfMemoryError, held + size <= limit_,
                       "the pretend device is out of memory: asked for ", size, " bytes, ", held,
                       " of ", limit_, " are held");
      if (const auto left = released_.find(size); left != released_.end()) {
        at = left->second;
        released_.erase(left);
      } else {
        used_ += size;
        if (used_ > kMemory) throw std::runtime_error("the pretend device has no addresses left");
      }
      held_.increase(size);
    }
    std::memset(open_ + at, 0xFF, size);  // NaN, so that reads of unwritten memory show
    return closed_ + at;
  }
  void give_back(void* place, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    cached_.emplace(room_for(bytes), static_cast<std::size_t>(static_cast<char*>(place) - closed_));
  }
  /// Releases cached blocks to the device.
  void release_cached() {
    const std::lock_guard lock(mutex_);
    for (const auto& [size, at] : cached_) held_.decrease(size);
    released_.merge(cached_);
  }
  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes == 0 ? kMemory : bytes;
  }
  c10::CachingAllocator::Stat held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    held_.reset_peak();
  }
  /// The address at which kernels access `place`.
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
    void* const address = ::mmap(nullptr, kMemory, how, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (address == MAP_FAILED) throw std::runtime_error("no addresses for the pretend device");
    return static_cast<char*>(address);
  }
  /// Rounds up to a power of two so that blocks can be reused.
  static std::size_t room_for(std::size_t bytes) {
    return std::bit_ceil(std::max<std::size_t>(64, bytes));
  }

  std::mutex mutex_;
  char* closed_ = nullptr;
  char* open_ = nullptr;
  std::size_t used_ = 0;
  std::size_t limit_ = kMemory;
  c10::CachingAllocator::Stat held_;  // bytes, including cached blocks
  // Offsets by size: of blocks kept for reuse, and of blocks released to the device.
  std::multimap<std::size_t, std::size_t> cached_, released_;
};

/// Memory of the host that counts as page-locked.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const block = new Pinned{std::vector<std::byte>(std::max<std::size_t>(1, bytes)), this};
    void* const begin = block->bytes.data();
    const std::lock_guard lock(mutex_);
    ends_[begin] = block->bytes.data() + block->bytes.size();
    return {begin, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool holds(const void* place) const {
    const std::lock_guard lock(mutex_);
    const auto after = ends_.upper_bound(place);
    return after != ends_.begin() && place < std::prev(after)->second;
  }

 private:
  struct Pinned {
    std::vector<std::byte> bytes;
    PinnedMemory* of;
  };
  static void give_back(void* context) {
    auto* const block = static_cast<Pinned*>(context);
    {
      const std::lock_guard lock(block->of->mutex_);
      block->of->ends_.erase(block->bytes.data());
    }
    delete block;
  }

  mutable std::mutex mutex_;
  std::map<const void*, const void*> ends_;  // the end of each block, by its beginning
};
PinnedMemory& pinned_memory() {
  static auto* const only = new PinnedMemory;
  return *only;
}

struct Block {
  void* place;
  std::size_t bytes;
};
void delete_block(void* context) {
  auto* const block = static_cast<Block*>(context);
  Memory::instance().give_back(block->place, block->bytes);
  delete block;
}

struct PretendAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const block = new Block{Memory::instance().take(bytes), bytes};
    return {block->place, block, &delete_block, c10::Device(kType, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const Memory& memory = Memory::instance();
    std::memcpy(memory.opened(to), memory.opened(const_cast<void*>(from)), bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { Memory::instance().release_cached(); }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.reserved_bytes[0] = Memory::instance().held();
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { Memory::instance().reset_peak(); }
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
  bool isPinnedPtr(const void* data) const override { return pinned_memory().holds(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
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

bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

/// Returns a CPU tensor over the same elements, for a CPU kernel.
at::Tensor seen_by_cpu(const at::Tensor& tensor) {
  if (!is_on_device(tensor)) return tensor;
  return at::from_blob(Memory::instance().opened(tensor.mutable_data_ptr()), tensor.sizes(),
                       tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor to_device(const at::Tensor& result) {
  if (!result.defined() || is_on_device(result)) return result;
  at::Tensor copy =
      empty_strided(result.sizes(), result.strides(), result.scalar_type(), {}, {}, {});
  seen_by_cpu(copy).copy_(result);
  return copy;
}

/// Gives an empty device tensor the size and elements that a kernel computed for it.
void take_over(const at::Tensor& ours, const at::Tensor& result) {
  if (ours.numel() > 0 || result.numel() == 0) return;
  const at::Tensor copy = to_device(result);
  ours.unsafeGetTensorImpl()->set_storage_keep_dtype(copy.storage());
  ours.unsafeGetTensorImpl()->set_sizes_and_strides(copy.sizes(), copy.strides());
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!is_on_device(to)) {
    ++counters().copies_out;
    ++counters().synchronisations;
  } else if (!is_on_device(from)) {
    ++counters().copies_in;
    counters().bytes_in += static_cast<std::int64_t>(from.nbytes());
    // Memory that is not page-locked could be paged out, so the host waits for the copy.
    if (!non_blocking || !pinned_memory().holds(from.const_data_ptr())) {
      ++counters().synchronisations;
    }
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

/// True if a GPU would accept this argument from the host.
bool host_may_give(const std::string& operation, const at::Tensor& tensor) {
  return tensor.dim() == 0 || operation == "aten::index.Tensor" ||
         operation == "aten::_index_put_impl_" || operation == "aten::index_put_";
}

/// Runs any other operation by its CPU kernel in this device's memory.
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
  each([&](const at::Tensor& tensor) { any_here = any_here || is_on_device(tensor); });
  each([&](const at::Tensor& tensor) {
    TORCH_CHECK(
        !any_here || !tensor.defined() || is_on_device(tensor) || host_may_give(name, tensor), name,
        ": tensors on the pretend device and on the CPU, of shape ", tensor.sizes());
  });
  ++counters().kernels;
  for (std::size_t i = 0; i < given.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (value.isTensor()) {
      const at::Tensor& tensor = given[i].toTensor();
      // An empty output takes the size of the result.
      const bool is_output = is_on_device(tensor) && tensor.numel() == 0;
      value = is_output ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU))
                        : seen_by_cpu(tensor);
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
        value = to_device(value.toTensor());
      } else if (value.isTensorList()) {
        std::vector<at::Tensor> all;
        for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(to_device(tensor));
        value = c10::List<at::Tensor>(all);
      }
      continue;
    }
    TORCH_CHECK(alias->isWrite(), name, ": a view that the pretend device does not know");
    // The result is the argument that was written to.
    for (std::size_t i = 0; i < given.size(); ++i) {
      const c10::AliasInfo* const written = schema.arguments()[i].alias_info();
      if (written != nullptr && *written == *alias) {
        if (given[i].isTensor()) take_over(given[i].toTensor(), value.toTensor());
        value = given[i];
      }
    }
  }
}

/// LibTorch's kernel for packed sequences, computed sequence by sequence.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt>
efficient_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const std::optional<at::Tensor>& bias,
                    const std::optional<at::Tensor>& query_starts,
                    const std::optional<at::Tensor>& key_starts,
                    std::optional<c10::SymInt> most_queries, std::optional<c10::SymInt> most_keys,
                    double dropout, std::int64_t mask_type, bool /*compute_log_sumexp*/,
                    std::optional<double> scale, const std::optional<at::Tensor>& /*key_lengths*/,
                    std::optional<std::int64_t> /*window_size*/) {
  TORCH_CHECK(!bias && dropout == 0 && mask_type == 0, "the pretend device has no such attention");
  TORCH_CHECK(query_starts->scalar_type() == at::kInt && key_starts->scalar_type() == at::kInt);
  TORCH_CHECK(query.dim() == 4 && query.size(0) == 1 && key.size(0) == 1);
  ++counters().kernels;
  ++counters().fused_attentions;
  // Like the kernel, rounds only the output to the type of the inputs.
  const auto by_heads = [](const at::Tensor& rows) {  // (heads, rows, d_head)
    return seen_by_cpu(rows)[0].transpose(0, 1).to(at::kFloat);
  };
  const at::Tensor from = by_heads(query), k = by_heads(key), v = by_heads(value);
  const at::Tensor q_at = seen_by_cpu(*query_starts), k_at = seen_by_cpu(*key_starts);
  at::Tensor output = at::empty(query.sizes(), query.options().device(at::kCPU));
  for (std::int64_t s = 0; s + 1 < q_at.size(0); ++s) {
    const std::int64_t q = q_at[s].item<int>(), queries = q_at[s + 1].item<int>() - q;
    const std::int64_t first = k_at[s].item<int>(), keys = k_at[s + 1].item<int>() - first;
    TORCH_CHECK(queries <= *most_queries && keys <= *most_keys);
    const at::Tensor scores =
        at::matmul(from.narrow(1, q, queries), k.narrow(1, first, keys).transpose(1, 2)) * *scale;
    output[0]
        .narrow(0, q, queries)
        .copy_(at::matmul(at::softmax(scores, -1), v.narrow(1, first, keys)).transpose(0, 1));
  }
  return {to_device(output), at::Tensor(), at::Tensor(), at::Tensor(), 0, 0};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_efficient_attention_forward", TORCH_FN(efficient_attention));
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
// LibTorch supports one kind of accelerator. Registering this one would disable a GPU's streams.
[[maybe_unused]] const bool registered = [] {
  if (!counts_what_is_tested()) return false;
  c10::SetAllocator(kType, &allocator);
  at::RegisterPrivateUse1HooksInterface(new PretendHooks);
  c10::register_privateuse1_backend("pretend");
  return true;
}();
[[maybe_unused]] const c10::impl::DeviceGuardImplRegistrar guarded(kType, &guard);

}  // namespace

at::Device pretend_device() { return at::Device(kType, 0); }

void* opened(void* place) { return place == nullptr ? nullptr : Memory::instance().opened(place); }

DeviceCounts device_counts() {
  const Counters& now = counters();
  DeviceCounts counts;
  counts.kernels = now.kernels;
  counts.copies_in = now.copies_in;
  counts.bytes_in = now.bytes_in;
  counts.copies_out = now.copies_out;
  counts.synchronisations = now.synchronisations;
  counts.fused_attentions = now.fused_attentions;
  return counts;
}

DeviceCounts counted(const DeviceCounts& before, const DeviceCounts& after) {
  DeviceCounts difference;
  for (const auto count : {&DeviceCounts::kernels, &DeviceCounts::copies_in,
                           &DeviceCounts::bytes_in, &DeviceCounts::copies_out,
                           &DeviceCounts::synchronisations, &DeviceCounts::fused_attentions}) {
    difference.*count = after.*count - before.*count;
  }
  return difference;
}

void limit_device_memory(std::size_t bytes) { Memory::instance().set_limit(bytes); }

}  // namespace petlab::testing
