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

/// Element types of safetensors files.
enum class DType { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };
/// Their names in the files: "BOOL", "U8", "F16", "BF16", "F32", ...
std::string_view to_string(DType dtype);
/// Returns std::nullopt for any text that to_string does not return.
std::optional<DType> dtype_from(std::string_view text);
/// Bytes per element.
std::size_t size_of(DType dtype);

/// A tensor in row-major order, in memory that `owner` keeps alive (a mapped file or a buffer). The
/// address may be unaligned for the element type.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // the bytes are in a mapped file and can be read again
};

/// The product of the sizes; 1 for a scalar. The caller must have ruled out overflow.
std::int64_t elements(std::span<const std::int64_t> shape);

/// Formats a shape as "[768, 64]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Copies the values to float32. Throws Error for types other than F16, BF16, F32 and F64.
std::vector<float> to_floats(const TensorView& tensor);

}  // namespace petlab::trainer
