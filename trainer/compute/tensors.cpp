#include "trainer/compute/tensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <stdexcept>

namespace petlab::trainer {
namespace {

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return at::kBool;
    case DType::u8:
      return at::kByte;
    case DType::i8:
      return at::kChar;
    case DType::u16:
      return at::kUInt16;
    case DType::i16:
      return at::kShort;
    case DType::u32:
      return at::kUInt32;
    case DType::i32:
      return at::kInt;
    case DType::u64:
      return at::kUInt64;
    case DType::i64:
      return at::kLong;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
  }
  throw std::logic_error("an element type without a counterpart");
}

DType dtype_of(at::ScalarType type) {
  for (const DType dtype : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32,
                            DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    if (scalar_type(dtype) == type) return dtype;
  }
  throw std::logic_error("an element type without a counterpart");
}

/// Owns a file's bytes for a tensor that uses them.
struct FileMemory {
  std::shared_ptr<const void> owner;
  bool mapped = false;

  static void release(void* memory) { delete static_cast<FileMemory*>(memory); }
};

}  // namespace

Tensor to_tensor(const TensorView& view) {
  const at::ScalarType type = scalar_type(view.dtype);
  const auto address = reinterpret_cast<std::uintptr_t>(view.bytes.data());
  if (view.bytes.empty() || address % size_of(view.dtype) != 0) {
    Tensor copy = at::empty(view.shape, type);
    if (!view.bytes.empty())
      std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return copy;
  }
  // LibTorch has no constant tensors, but nothing writes to a backbone's weights.
  void* const data = const_cast<std::byte*>(view.bytes.data());
  return at::for_blob(data, view.shape)
      .context(new FileMemory{view.owner, view.mapped}, &FileMemory::release)
      .options(at::TensorOptions().dtype(type))
      .make_tensor();
}

void release_pages(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  const auto* const file = memory.cast_context<FileMemory>(&FileMemory::release);
  if (file == nullptr || !file->mapped) return;
  // Only whole pages: the others are shared with neighbouring tensors.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.get());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + tensor.storage().nbytes()) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

Tensor to_tensor(const TensorView& view, const at::TensorOptions& options) {
  const Tensor stored = to_tensor(view);
  Tensor wanted = stored.to(options);
  if (!wanted.is_same(stored)) release_pages(stored);
  return wanted;
}

TensorView to_view(const Tensor& tensor) {
  auto kept = std::make_shared<Tensor>(tensor.detach().to(at::kCPU).contiguous());
  TensorView view;
  view.dtype = dtype_of(kept->scalar_type());
  view.shape = kept->sizes().vec();
  view.bytes = {static_cast<const std::byte*>(kept->const_data_ptr()), kept->nbytes()};
  view.owner = kept;
  return view;
}

Tensor with_zero_filling(const Tensor& of, std::int64_t width, std::int64_t rows) {
  Tensor result = at::empty({of.size(0), width}, of.options());
  if (result.size(0) > rows) result.narrow(0, rows, result.size(0) - rows).zero_();
  return result;
}

bool is_float_on_cpu(const Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat;
}

const std::uint16_t* short_numbers(const Tensor& of) {
  return reinterpret_cast<const std::uint16_t*>(of.const_data_ptr());
}

std::uint16_t* mutable_short_numbers(Tensor& of) {
  return reinterpret_cast<std::uint16_t*>(of.mutable_data_ptr());
}

Tensor on_device(const Tensor& of_host, at::Device device) {
  if (device.is_cpu()) return of_host;
  // The host would have to wait while a device copies from pageable memory.
  return of_host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace petlab::trainer
