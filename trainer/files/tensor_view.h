#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// Element types of safetensors files, with their names there.
enum class DType { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };
/// "BOOL", "U8", "F16", "BF16", "F32", ...
std::string_view to_string(DType dtype);
/// Anything else than the names of to_string is std::nullopt.
std::optional<DType> dtype_from(std::string_view text);
/// Bytes of an element.
std::size_t size_of(DType dtype);

/// A tensor in row-major order somewhere in memory that `owner` keeps alive (a mapped file, or a
/// buffer). The address need not be aligned for the element type.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // the bytes lie in a mapped file, which can be read again
};

/// Product of the sizes; 1 for a scalar. The sizes must have been checked against overflow.
std::int64_t elements(std::span<const std::int64_t> shape);

/// "[768, 64]"
std::string shape_text(std::span<const std::int64_t> shape);

/// The values as float32 (F16, BF16, F32 and F64 only, else Error). Copies.
std::vector<float> to_floats(const TensorView& tensor);

}  // namespace petlab::trainer
