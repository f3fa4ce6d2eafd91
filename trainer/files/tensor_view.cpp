#include "trainer/files/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;
};
constexpr std::array kDTypes{
    DTypeRow{DType::boolean, "BOOL", 1}, DTypeRow{DType::u8, "U8", 1},
    DTypeRow{DType::i8, "I8", 1},        DTypeRow{DType::u16, "U16", 2},
    DTypeRow{DType::i16, "I16", 2},      DTypeRow{DType::u32, "U32", 4},
    DTypeRow{DType::i32, "I32", 4},      DTypeRow{DType::u64, "U64", 8},
    DTypeRow{DType::i64, "I64", 8},      DTypeRow{DType::f16, "F16", 2},
    DTypeRow{DType::bf16, "BF16", 2},    DTypeRow{DType::f32, "F32", 4},
    DTypeRow{DType::f64, "F64", 8},
};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    // Zero and subnormals: mantissa · 2^-24, exact in float32.
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

template <typename Raw, typename Convert>
std::vector<float> convert(const TensorView& tensor, Convert to_float) {
  std::vector<float> result(static_cast<std::size_t>(elements(tensor.shape)));
  for (std::size_t i = 0; i < result.size(); ++i) {
    Raw raw;
    std::memcpy(&raw, tensor.bytes.data() + i * sizeof(Raw), sizeof(Raw));
    result[i] = to_float(raw);
  }
  return result;
}

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from(std::string_view text) {
  for (const DTypeRow& candidate : kDTypes) {
    if (candidate.name == text) return candidate.dtype;
  }
  return std::nullopt;
}

std::size_t size_of(DType dtype) { return row(dtype).size; }

std::int64_t elements(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<float> to_floats(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::f32:
      return convert<float>(tensor, [](float value) { return value; });
    case DType::f64:
      return convert<double>(tensor, [](double value) { return static_cast<float>(value); });
    case DType::f16:
      return convert<std::uint16_t>(tensor, half_to_float);
    case DType::bf16:
      return convert<std::uint16_t>(tensor, [](std::uint16_t value) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
      });
    default:
      throw Error(fmt::format("a tensor of dtype {} does not contain floating-point numbers",
                              to_string(tensor.dtype)));
  }
}

}  // namespace petlab::trainer
