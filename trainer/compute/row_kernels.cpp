#include "trainer/compute/row_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "trainer/compute/clones.h"
#include "trainer/compute/vector_math.h"

namespace petlab::trainer {
namespace {

/// Adds up the kBlock interleaved partial sums of a row, which allow vectorisation.
PETLAB_INLINE float sum_of(const float* chains) {
  float sum = 0;
  for (std::int64_t q = 0; q < kBlock; ++q) sum += chains[q];
  return sum;
}

PETLAB_CLONES void add_norm_rows(std::int64_t rows, std::int64_t width, const float* a,
                                 const float* b, const float* weight, const float* bias, float eps,
                                 float* output, float* normalised, float* inverse_deviation) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const x = a + r * width;
    const float* const y = b + r * width;
    float* const out = output + r * width;
    float chains[kBlock] = {};
    const std::int64_t whole = width / kBlock * kBlock;
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      for (std::int64_t q = 0; q < kBlock; ++q) {
        out[i + q] = x[i + q] + y[i + q];
        chains[q] += out[i + q];
      }
    }
    float sum = sum_of(chains);
    for (std::int64_t i = whole; i < width; ++i) {
      out[i] = x[i] + y[i];
      sum += out[i];
    }
    const float mean = sum / static_cast<float>(width);
    float squares[kBlock] = {};
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      for (std::int64_t q = 0; q < kBlock; ++q) {
        const float centred = out[i + q] - mean;
        squares[q] += centred * centred;
      }
    }
    float variance = sum_of(squares);
    for (std::int64_t i = whole; i < width; ++i) variance += (out[i] - mean) * (out[i] - mean);
    const float inverse = 1 / std::sqrt(variance / static_cast<float>(width) + eps);
    if (normalised != nullptr) {
      float* const kept = normalised + r * width;
      for (std::int64_t i = 0; i < width; ++i) {
        kept[i] = (out[i] - mean) * inverse;
        out[i] = kept[i] * weight[i] + bias[i];
      }
      inverse_deviation[r] = inverse;
    } else {
      for (std::int64_t i = 0; i < width; ++i) {
        out[i] = (out[i] - mean) * inverse * weight[i] + bias[i];
      }
    }
  }
}

PETLAB_CLONES void add_norm_rows_backward(std::int64_t rows, std::int64_t width,
                                          const float* output_gradient, const float* weight,
                                          const float* normalised, const float* inverse_deviation,
                                          float* gradient) {
  const std::int64_t whole = width / kBlock * kBlock;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const g = output_gradient + r * width;
    const float* const n = normalised + r * width;
    float* const to = gradient + r * width;
    float sums[kBlock] = {};
    float products[kBlock] = {};
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      for (std::int64_t q = 0; q < kBlock; ++q) {
        to[i + q] = g[i + q] * weight[i + q];
        sums[q] += to[i + q];
        products[q] += to[i + q] * n[i + q];
      }
    }
    float sum = sum_of(sums);
    float product = sum_of(products);
    for (std::int64_t i = whole; i < width; ++i) {
      to[i] = g[i] * weight[i];
      sum += to[i];
      product += to[i] * n[i];
    }
    sum /= static_cast<float>(width);
    product /= static_cast<float>(width);
    const float inverse = inverse_deviation[r];
    for (std::int64_t i = 0; i < width; ++i) to[i] = inverse * (to[i] - sum - n[i] * product);
  }
}

PETLAB_CLONES void rms_norm_rows(std::int64_t rows, std::int64_t width, const float* x,
                                 const float* weight, float eps, float* output,
                                 float* inverse_root) {
  const std::int64_t whole = width / kBlock * kBlock;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const from = x + r * width;
    float* const to = output + r * width;
    float squares[kBlock] = {};
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      for (std::int64_t q = 0; q < kBlock; ++q) squares[q] += from[i + q] * from[i + q];
    }
    float sum = sum_of(squares);
    for (std::int64_t i = whole; i < width; ++i) sum += from[i] * from[i];
    const float inverse = 1 / std::sqrt(sum / static_cast<float>(width) + eps);
    for (std::int64_t i = 0; i < width; ++i) to[i] = from[i] * inverse * weight[i];
    if (inverse_root != nullptr) inverse_root[r] = inverse;
  }
}

PETLAB_CLONES void rms_norm_rows_backward(std::int64_t rows, std::int64_t width,
                                          const float* output_gradient, const float* weight,
                                          const float* x, const float* inverse_root,
                                          float* gradient) {
  const std::int64_t whole = width / kBlock * kBlock;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const g = output_gradient + r * width;
    const float* const from = x + r * width;
    float* const to = gradient + r * width;
    float products[kBlock] = {};
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      for (std::int64_t q = 0; q < kBlock; ++q) {
        to[i + q] = g[i + q] * weight[i + q];
        products[q] += to[i + q] * from[i + q];
      }
    }
    float product = sum_of(products);
    for (std::int64_t i = whole; i < width; ++i) {
      to[i] = g[i] * weight[i];
      product += to[i] * from[i];
    }
    const float inverse = inverse_root[r];
    const float along = product / static_cast<float>(width) * inverse * inverse;
    for (std::int64_t i = 0; i < width; ++i) to[i] = inverse * (to[i] - from[i] * along);
  }
}

/// Keeps NaN, so that diverging training is noticed.
PETLAB_INLINE float positive(float x) { return x < 0 ? 0.0F : x; }

PETLAB_CLONES void drop_numbers(std::int64_t n, const float* x, const float* multiplier,
                                const float* residual, float* output, std::uint8_t* kept) {
  if (residual == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) output[i] = x[i] * multiplier[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) output[i] = residual[i] + x[i] * multiplier[i];
  }
  if (kept == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) kept[i] = multiplier[i] > 0 ? 1 : 0;
}

PETLAB_CLONES void drop_positive_numbers(std::int64_t n, const float* x, const float* multiplier,
                                         float* output, std::uint8_t* kept) {
  for (std::int64_t i = 0; i < n; ++i) output[i] = positive(x[i]) * multiplier[i];
  if (kept == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) kept[i] = multiplier[i] > 0 && !(x[i] <= 0) ? 1 : 0;
}

PETLAB_CLONES void drop_numbers_backward(std::int64_t n, const float* output_gradient,
                                         const std::uint8_t* kept, float scale, float* gradient) {
  for (std::int64_t i = 0; i < n; ++i) {
    gradient[i] = output_gradient[i] * (kept[i] != 0 ? scale : 0.0F);
  }
}

PETLAB_INLINE float widened(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16U);
}

PETLAB_CLONES void widen_numbers(std::int64_t rows, std::int64_t width, const std::uint16_t* x,
                                 const float* bias, float* output) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < rows * width; ++i) output[i] = widened(x[i]);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint16_t* const from = x + r * width;
    float* const to = output + r * width;
    for (std::int64_t i = 0; i < width; ++i) to[i] = widened(from[i]) + bias[i];
  }
}

PETLAB_CLONES void add_widened_numbers(std::int64_t n, const std::uint16_t* x, float* output) {
  for (std::int64_t i = 0; i < n; ++i) output[i] += widened(x[i]);
}

/// Rounds to the nearest bfloat16, ties to even. Keeps NaN.
PETLAB_INLINE std::uint16_t rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  return static_cast<std::uint16_t>(x != x ? 0x7fc0U : nearest);
}

struct Gelu {
  float value, derivative;
};

PETLAB_INLINE Gelu gelu_at(float v) {
  // Φ(v) from erf(|v| / √2) by Abramowitz and Stegun 7.1.26: |error| <= 1.5e-7.
  const float z = std::fabs(v) * 0.70710678118654752F;
  const float t = 1 / (1 + 0.3275911F * z);
  const float e = exponential(-z * z);
  const float p = ((((1.061405429F * t - 1.453152027F) * t + 1.421413741F) * t - 0.284496736F) * t +
                   0.254829592F) *
                  t * e;
  const float upper = 1 - 0.5F * p;
  const float phi = v < 0 ? 0.5F * p : upper;
  return {v * phi, phi + v * 0.39894228040143268F * e};
}

PETLAB_CLONES void gelu_numbers(std::int64_t n, const float* x, float* output, float* derivative) {
  PETLAB_TURNS_APART
  for (std::int64_t i = 0; i < n; ++i) {
    const Gelu gelu = gelu_at(x[i]);
    output[i] = gelu.value;
    if (derivative != nullptr) derivative[i] = gelu.derivative;
  }
}

// Loops with conditions over 16-bit numbers are not vectorised for every instruction set; single
// blocks are.

PETLAB_INLINE void widen_block(const std::uint16_t* x, float* output) {
  const auto bits = *reinterpret_cast<const Vector<std::uint16_t>*>(x);
  *reinterpret_cast<Vector<std::uint32_t>*>(output) =
      __builtin_convertvector(bits, Vector<std::uint32_t>) << 16U;
}

PETLAB_INLINE void round_block(const float* x, std::uint16_t* output) {
  const auto bits = *reinterpret_cast<const Vector<std::uint32_t>*>(x);
  const auto nearest = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const Vector<std::uint32_t> none = nearest * 0 + 0x7fc0U;
  const auto chosen = (bits & 0x7fffffffU) > 0x7f800000U ? none : nearest;
  *reinterpret_cast<Vector<std::uint16_t>*>(output) =
      __builtin_convertvector(chosen, Vector<std::uint16_t>);
}

/// Processes kBlock numbers; `derivative` may be nullptr.
PETLAB_INLINE void gelu_short_block(const std::uint16_t* x, const float* bias,
                                    std::uint16_t* output, std::uint16_t* derivative) {
  float values[kBlock], derivatives[kBlock];
  widen_block(x, values);
  for (std::int64_t q = 0; q < kBlock; ++q) {
    const Gelu gelu = gelu_at(values[q] + bias[q]);
    values[q] = gelu.value;
    derivatives[q] = gelu.derivative;
  }
  round_block(values, output);
  if (derivative != nullptr) round_block(derivatives, derivative);
}

PETLAB_CLONES void gelu_short_numbers(std::int64_t rows, std::int64_t width, const std::uint16_t* x,
                                      const float* bias, std::uint16_t* output,
                                      std::uint16_t* derivative) {
  const std::int64_t whole = width / kBlock * kBlock;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t at = r * width;
    for (std::int64_t i = 0; i < whole; i += kBlock) {
      gelu_short_block(x + at + i, bias + i, output + at + i,
                       derivative == nullptr ? nullptr : derivative + at + i);
    }
    for (std::int64_t i = whole; i < width; ++i) {
      const Gelu gelu = gelu_at(widened(x[at + i]) + bias[i]);
      output[at + i] = rounded(gelu.value);
      if (derivative != nullptr) derivative[at + i] = rounded(gelu.derivative);
    }
  }
}

PETLAB_CLONES void multiply_short_numbers(std::int64_t n, const std::uint16_t* factor,
                                          std::uint16_t* x) {
  const std::int64_t whole = n / kBlock * kBlock;
  for (std::int64_t i = 0; i < whole; i += kBlock) {
    float product[kBlock], by[kBlock];
    widen_block(x + i, product);
    widen_block(factor + i, by);
    for (std::int64_t q = 0; q < kBlock; ++q) product[q] *= by[q];
    round_block(product, x + i);
  }
  for (std::int64_t i = whole; i < n; ++i) x[i] = rounded(widened(x[i]) * widened(factor[i]));
}

/// Updates the maximum of each lane. NaN counts as smaller than any number.
PETLAB_INLINE void take_larger(Vector<float>& largest, const float* x) {
  const auto found = *reinterpret_cast<const Vector<float>*>(x);
  largest = found > largest ? found : largest;
}

PETLAB_INLINE float largest_lane(const Vector<float>& of) {
  float largest = of[0];
  for (std::int64_t q = 1; q < kBlock; ++q) largest = of[q] > largest ? of[q] : largest;
  return largest;
}

constexpr float kLowest = -std::numeric_limits<float>::infinity();

PETLAB_INLINE float largest_of(std::int64_t n, const float* x) {
  Vector<float> lanes = {};
  lanes += kLowest;
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) take_larger(lanes, x + i);
  float largest = largest_lane(lanes);
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

PETLAB_CLONES float log_sum_exp_of(std::int64_t n, const float* x) {
  const float largest = largest_of(n, x);
  float sums[kBlock] = {};
  const std::int64_t whole = n / kBlock * kBlock;
  for (std::int64_t i = 0; i < whole; i += kBlock) {
    for (std::int64_t q = 0; q < kBlock; ++q) sums[q] += exponential(x[i + q] - largest);
  }
  float sum = sum_of(sums);
  for (std::int64_t i = whole; i < n; ++i) sum += exponential(x[i] - largest);
  return largest + std::log(sum);
}

constexpr std::int64_t kChunk = 64;  // numbers in a row that are searched or skipped together

PETLAB_CLONES void largest_of_chunks(std::int64_t n, const float* x, float* largest) {
  for (std::int64_t from = 0; from < n; from += kChunk) {
    *largest++ = largest_of(std::min(kChunk, n - from), x + from);
  }
}

}  // namespace

float log_sum_exp(std::int64_t n, const float* x) { return log_sum_exp_of(n, x); }

void largest_of_row(std::int64_t n, std::int64_t k, const float* x, float* values,
                    std::int64_t* places) {
  // Only chunks whose maximum is among the k largest maxima can contain the k largest numbers.
  thread_local std::vector<float> chunks, sorted;
  thread_local std::vector<std::int64_t> found;
  chunks.resize(static_cast<std::size_t>((n + kChunk - 1) / kChunk));
  largest_of_chunks(n, x, chunks.data());
  float least = kLowest;
  if (k <= static_cast<std::int64_t>(chunks.size())) {
    sorted = chunks;
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
    least = *at;
  }
  found.clear();
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (chunks[chunk] < least) continue;
    const auto from = static_cast<std::int64_t>(chunk) * kChunk;
    const std::int64_t to = std::min(from + kChunk, n);
    for (std::int64_t i = from; i < to; ++i) {
      if (x[i] >= least) found.push_back(i);
    }
  }
  const auto comes_before = [x](std::int64_t a, std::int64_t b) {
    return x[a] > x[b] || (!(x[b] > x[a]) && a < b);
  };
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(k), found.end(),
                    comes_before);
  for (std::int64_t i = 0; i < k; ++i) {
    places[i] = found[static_cast<std::size_t>(i)];
    values[i] = x[places[i]];
  }
}

void add_norm_forward(std::int64_t rows, std::int64_t width, const float* a, const float* b,
                      const float* weight, const float* bias, float eps, float* output,
                      float* normalised, float* inverse_deviation) {
  add_norm_rows(rows, width, a, b, weight, bias, eps, output, normalised, inverse_deviation);
}
void add_norm_backward(std::int64_t rows, std::int64_t width, const float* output_gradient,
                       const float* weight, const float* normalised, const float* inverse_deviation,
                       float* gradient) {
  add_norm_rows_backward(rows, width, output_gradient, weight, normalised, inverse_deviation,
                         gradient);
}
void rms_norm_forward(std::int64_t rows, std::int64_t width, const float* x, const float* weight,
                      float eps, float* output, float* inverse_root) {
  rms_norm_rows(rows, width, x, weight, eps, output, inverse_root);
}
void rms_norm_backward(std::int64_t rows, std::int64_t width, const float* output_gradient,
                       const float* weight, const float* x, const float* inverse_root,
                       float* gradient) {
  rms_norm_rows_backward(rows, width, output_gradient, weight, x, inverse_root, gradient);
}
void drop_forward(Dropped dropped, std::int64_t n, const float* x, const float* multiplier,
                  const float* residual, float* output, std::uint8_t* kept) {
  if (dropped == Dropped::itself) {
    drop_numbers(n, x, multiplier, residual, output, kept);
    return;
  }
  drop_positive_numbers(n, x, multiplier, output, kept);
  if (residual == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) output[i] += residual[i];
}
void drop_backward(std::int64_t n, const float* output_gradient, const std::uint8_t* kept,
                   float scale, float* gradient) {
  drop_numbers_backward(n, output_gradient, kept, scale, gradient);
}
void widen_rows(std::int64_t rows, std::int64_t width, const std::uint16_t* x, const float* bias,
                float* output) {
  widen_numbers(rows, width, x, bias, output);
}

void add_widened(std::int64_t n, const std::uint16_t* x, float* output) {
  add_widened_numbers(n, x, output);
}
void gelu_forward(std::int64_t n, const float* x, float* output, float* derivative) {
  gelu_numbers(n, x, output, derivative);
}
void gelu_short_forward(std::int64_t rows, std::int64_t width, const std::uint16_t* x,
                        const float* bias, std::uint16_t* output, std::uint16_t* derivative) {
  gelu_short_numbers(rows, width, x, bias, output, derivative);
}
void multiply_short(std::int64_t n, const std::uint16_t* factor, std::uint16_t* x) {
  multiply_short_numbers(n, factor, x);
}

}  // namespace petlab::trainer
