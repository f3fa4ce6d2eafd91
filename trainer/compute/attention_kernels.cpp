#include "trainer/compute/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "trainer/compute/clones.h"
#include "trainer/compute/vector_math.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kRows = 4;  // rows at a time: independent chains of additions
/// So many queries are not worth the keys' copying and transposing.
constexpr std::int64_t kFewQueries = 8;

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

/// Query i's products with the keys of head h become its probabilities; zero beyond the keys.
template <typename T>
PETLAB_INLINE void to_probabilities(const SequenceAttention<T>& of, std::int64_t h, std::int64_t i,
                                    T scale, std::int64_t stride, T* row) {
  const std::int64_t keys = of.keys();
  const std::int64_t seen = of.causal ? std::min(of.prefix_length + i + 1, keys) : keys;
  for (std::int64_t j = 0; j < seen; ++j) row[j] *= scale;
  if (of.bias != nullptr) {
    const T* const bias = of.bias_of(h) - i;
    for (std::int64_t j = of.prefix_length; j < seen; ++j) row[j] += bias[j - of.prefix_length];
  }
  softmax(row, seen);
  for (std::int64_t j = seen; j < stride; ++j) row[j] = 0;
}

/// Row j of the prefix and what follows it.
template <typename T>
PETLAB_INLINE const T* row_of(const SequenceAttention<T>& of, const T* prefix, const T* rows,
                              std::int64_t j) {
  const std::int64_t d_model = of.heads * of.d_head;
  if (j < of.prefix_length) return prefix + j * d_model;
  const std::int64_t token = j - of.prefix_length;
  return rows + (of.key_rows == nullptr ? token : of.key_rows[token]) * d_model;
}

template <typename T>
PETLAB_INLINE T sum_of_lanes(const Vector<T>& of) {
  Vector<T> v = of;
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1);
  return v[0] + v[1];
}

template <typename T>
PETLAB_INLINE T dot(std::int64_t n, const T* a, const T* b) {
  Vector<T> sums = {};
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    sums += *reinterpret_cast<const Vector<T>*>(a + i) * *reinterpret_cast<const Vector<T>*>(b + i);
  }
  T sum = sum_of_lanes<T>(sums);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Forward where few queries ask: keys and values are read where they lie.
template <typename T>
PETLAB_INLINE void forward_of_few(const SequenceAttention<T>& of, T* output, T* probabilities) {
  const std::int64_t d_model = of.heads * of.d_head;
  const std::int64_t keys = of.keys();
  const std::int64_t stride = (keys + kBlock - 1) / kBlock * kBlock;
  const T scale = of.scaled ? 1 / std::sqrt(static_cast<T>(of.d_head)) : 1;
  for (std::int64_t h = 0; h < of.heads; ++h) {
    T* const p = probabilities + h * of.queries * stride;
    const std::int64_t own = h * of.d_head;
    for (std::int64_t j = 0; j < keys; ++j) {
      const T* const key = row_of(of, of.prefix_key, of.key, j) + own;
      for (std::int64_t i = 0; i < of.queries; ++i) {
        p[i * stride + j] = dot(of.d_head, of.query + i * d_model + own, key);
      }
    }
    for (std::int64_t i = 0; i < of.queries; ++i) {
      T* const row = p + i * stride;
      to_probabilities(of, h, i, scale, stride, row);
      T* const to = output + i * d_model + own;
      std::int64_t c = 0;
      for (; c + kBlock <= of.d_head; c += kBlock) {
        Vector<T> sums = {};
        for (std::int64_t j = 0; j < keys; ++j) {
          const T* const value = row_of(of, of.prefix_value, of.value, j) + own + c;
          sums += row[j] * *reinterpret_cast<const Vector<T>*>(value);
        }
        *reinterpret_cast<Vector<T>*>(to + c) = sums;
      }
      for (; c < of.d_head; ++c) {
        T sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          sum += row[j] * row_of(of, of.prefix_value, of.value, j)[own + c];
        }
        to[c] = sum;
      }
    }
  }
}

template <typename T>
PETLAB_INLINE void forward(const SequenceAttention<T>& of, const T* multipliers, T* output,
                           T* probabilities, T* room) {
  if (of.queries <= kFewQueries && multipliers == nullptr) {
    forward_of_few(of, output, probabilities);
    return;
  }
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
      to_probabilities(of, h, i, scale, stride, p + i * stride);
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

}  // namespace petlab::trainer
