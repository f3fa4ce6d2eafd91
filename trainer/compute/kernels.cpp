#include "trainer/compute/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

// A loader without indirect functions (or another processor) takes the plain compilation.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define PETLAB_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PETLAB_CLONES
#endif
// What a clone calls must be inlined into it to be compiled for its instruction set.
#define PETLAB_INLINE inline __attribute__((always_inline))

namespace petlab::trainer {
namespace {

constexpr std::int64_t kBlock = 16;  // numbers of a row at a time: one vector of floats
constexpr std::int64_t kRows = 4;    // rows at a time: independent chains of additions

/// kBlock numbers, wherever they lie in memory.
template <typename T>
using Vector [[gnu::vector_size(kBlock * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;

/// C = A · B for matrices of a few dozen rows. A is read with two strides, so transposed where
/// wanted; rows of B and C are `b_row` and `c_row` apart.
template <typename T, std::int64_t M>
PETLAB_INLINE void multiply_rows(std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
                                 std::int64_t a_column, const T* b, std::int64_t b_row, T* c,
                                 std::int64_t c_row) {
  std::int64_t j = 0;
  for (; j + kBlock <= n; j += kBlock) {
    // Vectors by name: GCC 12 does not keep arrays of sums in registers.
    Vector<T> sums[M] = {};
    for (std::int64_t p = 0; p < k; ++p) {
      const auto row = *reinterpret_cast<const Vector<T>*>(b + p * b_row + j);
      for (std::int64_t i = 0; i < M; ++i) sums[i] += a[i * a_row + p * a_column] * row;
    }
    for (std::int64_t i = 0; i < M; ++i) *reinterpret_cast<Vector<T>*>(c + i * c_row + j) = sums[i];
  }
  for (; j < n; ++j) {
    for (std::int64_t i = 0; i < M; ++i) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * a_row + p * a_column] * b[p * b_row + j];
      c[i * c_row + j] = sum;
    }
  }
}

template <typename T>
PETLAB_INLINE void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                            std::int64_t a_row, std::int64_t a_column, const T* b,
                            std::int64_t b_row, T* c, std::int64_t c_row) {
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    multiply_rows<T, kRows>(n, k, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row, c_row);
  }
  for (; i < m; ++i) {
    multiply_rows<T, 1>(n, k, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row, c_row);
  }
}

/// e^x for x <= 0 in one or two units of the last place: 2^i · e^r with |r| <= ln 2 / 2.
PETLAB_INLINE float exponential(float x) {
  const float limited = std::max(x, -87.0F);
  // Adding 1.5 · 2^23 rounds to a whole number without a call, and leaves it in the lowest bits:
  // there it can be read of anything, while a cast is undefined for the NaN of a training that
  // diverged. (p is NaN then, and so is the product.)
  constexpr float kRounder = 12582912.0F;
  const float shifted = limited * 1.44269504088896341F + kRounder;
  const float whole = shifted - kRounder;
  const float r = (limited - whole * 0.693359375F) + whole * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::uint32_t power =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 127U;
  return p * std::bit_cast<float>(power << 23);
}
PETLAB_INLINE double exponential(double x) { return std::exp(x); }

template <typename T>
PETLAB_INLINE void softmax(T* row, std::int64_t n) {
  T largest = row[0];
  for (std::int64_t j = 1; j < n; ++j) largest = std::max(largest, row[j]);
  for (std::int64_t j = 0; j < n; ++j) row[j] = exponential(row[j] - largest);
  T sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += row[j];
  const T factor = 1 / sum;
  for (std::int64_t j = 0; j < n; ++j) row[j] *= factor;
}

/// A head's keys or values, prefix first, as (keys, d_head).
template <typename T>
PETLAB_INLINE void gather_head(const SequenceAttention<T>& of, const T* prefix, const T* rows,
                               std::int64_t head, T* to) {
  const std::int64_t d_model = of.heads * of.d_head;
  const auto bytes = static_cast<std::size_t>(of.d_head) * sizeof(T);
  for (std::int64_t j = 0; j < of.prefix_length; ++j) {
    std::memcpy(to + j * of.d_head, prefix + j * d_model + head * of.d_head, bytes);
  }
  for (std::int64_t j = 0; j < of.tokens; ++j) {
    const std::int64_t row = of.key_rows == nullptr ? j : of.key_rows[j];
    std::memcpy(to + (of.prefix_length + j) * of.d_head, rows + row * d_model + head * of.d_head,
                bytes);
  }
}

template <typename T>
PETLAB_INLINE void scatter_head(const SequenceAttention<T>& of, const T* from, std::int64_t head,
                                T* prefix, T* rows) {
  const std::int64_t d_model = of.heads * of.d_head;
  const auto bytes = static_cast<std::size_t>(of.d_head) * sizeof(T);
  for (std::int64_t j = 0; j < of.prefix_length; ++j) {
    std::memcpy(prefix + j * d_model + head * of.d_head, from + j * of.d_head, bytes);
  }
  for (std::int64_t j = 0; j < of.tokens; ++j) {
    std::memcpy(rows + j * d_model + head * of.d_head, from + (of.prefix_length + j) * of.d_head,
                bytes);
  }
}

/// (keys, d_head) as (d_head, stride), zero beyond the keys.
template <typename T>
PETLAB_INLINE void transpose(const T* from, std::int64_t keys, std::int64_t d_head,
                             std::int64_t stride, T* to) {
  for (std::int64_t c = 0; c < d_head; ++c) {
    for (std::int64_t j = 0; j < keys; ++j) to[c * stride + j] = from[j * d_head + c];
    for (std::int64_t j = keys; j < stride; ++j) to[c * stride + j] = 0;
  }
}

template <typename T>
PETLAB_INLINE void forward(const SequenceAttention<T>& of, const T* multipliers, T* output,
                           T* probabilities, T* room) {
  const std::int64_t d_model = of.heads * of.d_head;
  const std::int64_t keys = of.keys();
  const std::int64_t stride = (keys + kBlock - 1) / kBlock * kBlock;
  const T scale = of.scaled ? 1 / std::sqrt(static_cast<T>(of.d_head)) : 1;
  T* const rows = room;
  T* const columns = rows + keys * of.d_head;
  T* const dropped = columns + stride * of.d_head;
  for (std::int64_t h = 0; h < of.heads; ++h) {
    T* const p = probabilities + h * of.queries * stride;
    gather_head(of, of.prefix_key, of.key, h, rows);
    transpose(rows, keys, of.d_head, stride, columns);
    multiply<T>(of.queries, stride, of.d_head, of.query + h * of.d_head, d_model, 1, columns,
                stride, p, stride);
    for (std::int64_t i = 0; i < of.queries; ++i) {
      T* const row = p + i * stride;
      const std::int64_t seen = of.causal ? std::min(of.prefix_length + i + 1, keys) : keys;
      for (std::int64_t j = 0; j < seen; ++j) row[j] *= scale;
      if (of.bias != nullptr) {
        const T* const bias = of.bias_of(h) - i;
        for (std::int64_t j = of.prefix_length; j < seen; ++j) row[j] += bias[j - of.prefix_length];
      }
      softmax(row, seen);
      for (std::int64_t j = seen; j < stride; ++j) row[j] = 0;
    }
    const T* used = p;
    if (multipliers != nullptr) {
      for (std::int64_t i = 0; i < of.queries; ++i) {
        const T* const factor = multipliers + (i * of.heads + h) * keys;
        T* const row = p + i * stride;
        T* const kept = dropped + i * stride;
        for (std::int64_t j = 0; j < keys; ++j) {
          kept[j] = row[j] * factor[j];
          row[j] = factor[j] > 0 ? row[j] : -row[j];
        }
      }
      used = dropped;
    }
    gather_head(of, of.prefix_value, of.value, h, rows);
    multiply<T>(of.queries, of.d_head, keys, used, stride, 1, rows, of.d_head,
                output + h * of.d_head, d_model);
  }
}

template <typename T>
PETLAB_INLINE void backward(const SequenceAttention<T>& of, const T* output_gradient,
                            const T* probabilities, T dropout_scale,
                            const AttentionGradients<T>& gradients, T* room) {
  const std::int64_t d_model = of.heads * of.d_head;
  const std::int64_t keys = of.keys();
  const std::int64_t stride = (keys + kBlock - 1) / kBlock * kBlock;
  const T scale = of.scaled ? 1 / std::sqrt(static_cast<T>(of.d_head)) : 1;
  T* const rows = room;
  T* const columns = rows + keys * of.d_head;
  T* const kept = columns + stride * of.d_head;     // probabilities after dropout
  T* const to_scores = kept + of.queries * stride;  // their gradients, then those of the scores
  for (std::int64_t h = 0; h < of.heads; ++h) {
    const T* const p = probabilities + h * of.queries * stride;
    const T* const to_output = output_gradient + h * of.d_head;
    gather_head(of, of.prefix_value, of.value, h, rows);
    transpose(rows, keys, of.d_head, stride, columns);
    multiply<T>(of.queries, stride, of.d_head, to_output, d_model, 1, columns, stride, to_scores,
                stride);
    for (std::int64_t i = 0; i < of.queries; ++i) {
      const T* const row = p + i * stride;
      T* const kept_row = kept + i * stride;
      T* const gradient = to_scores + i * stride;
      T sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        kept_row[j] = row[j] > 0 ? row[j] * dropout_scale : 0;
        sum += kept_row[j] * gradient[j];
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        const T to_probability = row[j] > 0 ? gradient[j] * dropout_scale : 0;
        gradient[j] = (row[j] > 0 ? row[j] : -row[j]) * (to_probability - sum) * scale;
      }
      if (gradients.bias != nullptr) {
        T* const to_bias = gradients.bias + (of.bias_of(h) - of.bias) - i;
        for (std::int64_t j = of.prefix_length; j < keys; ++j) {
          to_bias[j - of.prefix_length] += gradient[j] / scale;
        }
      }
    }
    multiply<T>(keys, of.d_head, of.queries, kept, 1, stride, to_output, d_model, rows, of.d_head);
    scatter_head(of, rows, h, gradients.prefix_value, gradients.value);
    gather_head(of, of.prefix_key, of.key, h, rows);
    multiply<T>(of.queries, of.d_head, keys, to_scores, stride, 1, rows, of.d_head,
                gradients.query + h * of.d_head, d_model);
    multiply<T>(keys, of.d_head, of.queries, to_scores, 1, stride, of.query + h * of.d_head,
                d_model, rows, of.d_head);
    scatter_head(of, rows, h, gradients.prefix_key, gradients.key);
  }
}

PETLAB_CLONES void forward_f32(const SequenceAttention<float>& of, const float* multipliers,
                               float* output, float* probabilities, float* room) {
  forward<float>(of, multipliers, output, probabilities, room);
}
PETLAB_CLONES void forward_f64(const SequenceAttention<double>& of, const double* multipliers,
                               double* output, double* probabilities, double* room) {
  forward<double>(of, multipliers, output, probabilities, room);
}
PETLAB_CLONES void backward_f32(const SequenceAttention<float>& of, const float* output_gradient,
                                const float* probabilities, float dropout_scale,
                                const AttentionGradients<float>& gradients, float* room) {
  backward<float>(of, output_gradient, probabilities, dropout_scale, gradients, room);
}
PETLAB_CLONES void backward_f64(const SequenceAttention<double>& of, const double* output_gradient,
                                const double* probabilities, double dropout_scale,
                                const AttentionGradients<double>& gradients, double* room) {
  backward<double>(of, output_gradient, probabilities, dropout_scale, gradients, room);
}

/// Sums of a row in kBlock interleaved chains, so that they vectorise.
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

PETLAB_CLONES void gelu_numbers(std::int64_t n, const float* x, float* output, float* derivative) {
  for (std::int64_t i = 0; i < n; ++i) {
    // Φ(x) by Abramowitz and Stegun 7.1.26 of erf(|x| / √2): |error| <= 1.5e-7.
    const float v = x[i];
    const float z = std::fabs(v) * 0.70710678118654752F;
    const float t = 1 / (1 + 0.3275911F * z);
    const float e = exponential(-z * z);
    const float p =
        ((((1.061405429F * t - 1.453152027F) * t + 1.421413741F) * t - 0.284496736F) * t +
         0.254829592F) *
        t * e;
    const float upper = 1 - 0.5F * p;
    const float phi = v < 0 ? 0.5F * p : upper;
    output[i] = v * phi;
    if (derivative != nullptr) derivative[i] = phi + v * 0.39894228040143268F * e;
  }
}

template <typename T>
T* room_of(std::int64_t numbers) {
  thread_local std::vector<T> room;
  if (static_cast<std::int64_t>(room.size()) < numbers) {
    room.resize(static_cast<std::size_t>(numbers));
  }
  return room.data();
}

template <typename T>
T* room_for(const SequenceAttention<T>& of) {
  const std::int64_t stride = probability_stride(of.keys());
  return room_of<T>((of.keys() + stride) * of.d_head + 2 * of.queries * stride);
}

}  // namespace

std::int64_t probability_stride(std::int64_t keys) { return (keys + kBlock - 1) / kBlock * kBlock; }

void attention_forward(const SequenceAttention<float>& of, const float* multipliers, float* output,
                       float* probabilities) {
  forward_f32(of, multipliers, output, probabilities, room_for(of));
}
void attention_forward(const SequenceAttention<double>& of, const double* multipliers,
                       double* output, double* probabilities) {
  forward_f64(of, multipliers, output, probabilities, room_for(of));
}
void attention_backward(const SequenceAttention<float>& of, const float* output_gradient,
                        const float* probabilities, float dropout_scale,
                        const AttentionGradients<float>& gradients) {
  backward_f32(of, output_gradient, probabilities, dropout_scale, gradients, room_for(of));
}
void attention_backward(const SequenceAttention<double>& of, const double* output_gradient,
                        const double* probabilities, double dropout_scale,
                        const AttentionGradients<double>& gradients) {
  backward_f64(of, output_gradient, probabilities, dropout_scale, gradients, room_for(of));
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
void widen_rows(std::int64_t rows, std::int64_t width, const std::uint16_t* x, const float* bias,
                float* output) {
  widen_numbers(rows, width, x, bias, output);
}
void gelu_forward(std::int64_t n, const float* x, float* output, float* derivative) {
  gelu_numbers(n, x, output, derivative);
}

}  // namespace petlab::trainer
