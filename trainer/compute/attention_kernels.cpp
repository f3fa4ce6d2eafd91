// In one file because its loops are compiled with flags of their own and inlined into each other.
#include "trainer/compute/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "trainer/compute/clones.h"
#include "trainer/compute/vector_math.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kRows = 6;  // rows computed together: independent chains of additions
/// Up to this many queries, copying and transposing the keys does not pay.
constexpr std::int64_t kFewQueries = 8;
constexpr std::int64_t kSquare = 4;  // rows and columns transposed together

// Vectors wider than the processor's registers spill to the stack between operations.
constexpr std::int64_t kWideLanes = 16;
#if defined(__x86_64__)
constexpr std::int64_t kNarrowLanes = 8;
#else
constexpr std::int64_t kNarrowLanes = 4;
#endif

template <std::int64_t M>
using RowCount = std::integral_constant<std::int64_t, M>;

/// Calls work(RowCount<M>(), row) for M rows at a time, from `row` until all `rows` are done.
template <std::int64_t M = kRows, typename Work>
PETLAB_INLINE void by_rows(std::int64_t rows, const Work& work, std::int64_t row = 0) {
  for (; row + M <= rows; row += M) work(RowCount<M>(), row);
  if constexpr (M > 1) {
    if (row < rows) by_rows<M - 1>(rows, work, row);
  }
}

/// C = A · B for M rows of A. Two strides for A allow it to be transposed. Rows of B and C are
/// `b_row` and `c_row` apart.
template <std::int64_t kLanes, std::int64_t M, typename T>
PETLAB_INLINE void multiply_rows(std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
                                 std::int64_t a_column, const T* b, std::int64_t b_row, T* c,
                                 std::int64_t c_row) {
  using Part = Lanes<T, kLanes>;
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    Part sums[M] = {};
    for (std::int64_t p = 0; p < k; ++p) {
      const auto row = *reinterpret_cast<const Part*>(b + p * b_row + j);
      for (std::int64_t i = 0; i < M; ++i) sums[i] += a[i * a_row + p * a_column] * row;
    }
    for (std::int64_t i = 0; i < M; ++i) *reinterpret_cast<Part*>(c + i * c_row + j) = sums[i];
  }
  for (; j < n; ++j) {
    for (std::int64_t i = 0; i < M; ++i) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * a_row + p * a_column] * b[p * b_row + j];
      c[i * c_row + j] = sum;
    }
  }
}

/// C = A · B for matrices of a few dozen rows.
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                            std::int64_t a_row, std::int64_t a_column, const T* b,
                            std::int64_t b_row, T* c, std::int64_t c_row) {
  by_rows(m, [&](auto count, std::int64_t i) PETLAB_INLINE_LAMBDA {
    multiply_rows<kLanes, count.value>(n, k, a + i * a_row, a_row, a_column, b, b_row,
                                       c + i * c_row, c_row);
  });
}

template <std::int64_t kLanes, typename T>
PETLAB_INLINE T largest_of(std::int64_t n, const T* x) {
  T largest = x[0];
  std::int64_t j = 0;
  if (n >= kLanes) {
    auto most = *reinterpret_cast<const Lanes<T, kLanes>*>(x);
    for (j = kLanes; j + kLanes <= n; j += kLanes) {
      const auto found = *reinterpret_cast<const Lanes<T, kLanes>*>(x + j);
      most = found > most ? found : most;
    }
    for (std::int64_t q = 0; q < kLanes; ++q) largest = std::max<T>(largest, most[q]);
  }
  for (; j < n; ++j) largest = std::max(largest, x[j]);
  return largest;
}

/// Row j of the prefix followed by the sequence's own rows.
template <typename T>
PETLAB_INLINE const T* row_of(const SequenceAttention<T>& of, const T* prefix, const T* rows,
                              std::int64_t j) {
  const std::int64_t d_model = of.heads * of.d_head;
  if (j < of.prefix_length) return prefix + j * d_model;
  const std::int64_t token = j - of.prefix_length;
  return rows + (of.key_rows == nullptr ? token : of.key_rows[token]) * d_model;
}

/// Copies a head's keys or values, prefix first, to (keys, d_head).
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void gather_head(const SequenceAttention<T>& of, const T* prefix, const T* rows,
                               std::int64_t head, T* to) {
  using Part = Lanes<T, kLanes>;
  for (std::int64_t j = 0; j < of.keys(); ++j, to += of.d_head) {
    const T* const from = row_of(of, prefix, rows, j) + head * of.d_head;
    std::int64_t c = 0;
    for (; c + kLanes <= of.d_head; c += kLanes) {
      *reinterpret_cast<Part*>(to + c) = *reinterpret_cast<const Part*>(from + c);
    }
    for (; c < of.d_head; ++c) to[c] = from[c];
  }
}

/// Copies a head's keys or values, prefix first, to (d_head, stride), with zeros after the keys.
template <typename T>
PETLAB_INLINE void transpose_head(const SequenceAttention<T>& of, const T* prefix, const T* rows,
                                  std::int64_t head, std::int64_t stride, T* to) {
  using Part = Lanes<T, kSquare>;
  const std::int64_t keys = of.keys();
  const std::int64_t head_begin = head * of.d_head;
  std::int64_t j = 0;
  for (; j + kSquare <= keys; j += kSquare) {
    const T* const a = row_of(of, prefix, rows, j) + head_begin;
    const T* const b = row_of(of, prefix, rows, j + 1) + head_begin;
    const T* const c = row_of(of, prefix, rows, j + 2) + head_begin;
    const T* const d = row_of(of, prefix, rows, j + 3) + head_begin;
    std::int64_t i = 0;
    for (; i + kSquare <= of.d_head; i += kSquare) {
      const auto r0 = *reinterpret_cast<const Part*>(a + i);
      const auto r1 = *reinterpret_cast<const Part*>(b + i);
      const auto r2 = *reinterpret_cast<const Part*>(c + i);
      const auto r3 = *reinterpret_cast<const Part*>(d + i);
      const auto low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
      const auto high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
      const auto low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
      const auto high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
      T* const at = to + i * stride + j;
      *reinterpret_cast<Part*>(at) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      *reinterpret_cast<Part*>(at + stride) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      *reinterpret_cast<Part*>(at + 2 * stride) =
          __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      *reinterpret_cast<Part*>(at + 3 * stride) =
          __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }
    for (; i < of.d_head; ++i) {
      T* const at = to + i * stride + j;
      at[0] = a[i];
      at[1] = b[i];
      at[2] = c[i];
      at[3] = d[i];
    }
  }
  for (; j < keys; ++j) {
    const T* const from = row_of(of, prefix, rows, j) + head_begin;
    for (std::int64_t i = 0; i < of.d_head; ++i) to[i * stride + j] = from[i];
  }
  for (std::int64_t i = 0; i < of.d_head; ++i) {
    for (j = keys; j < stride; ++j) to[i * stride + j] = 0;
  }
}

/// Turns the products of M queries, from `first` on, with the keys of head h into probabilities, in
/// place in `rows` (M, stride), with zeros after the keys.
template <std::int64_t kLanes, std::int64_t M, typename T>
PETLAB_INLINE void to_probabilities(const SequenceAttention<T>& of, std::int64_t h,
                                    std::int64_t first, T scale, std::int64_t stride, T* rows) {
  const std::int64_t keys = of.keys();
  const auto seen_by = [&](std::int64_t i) PETLAB_INLINE_LAMBDA {
    return of.causal ? std::min(of.prefix_length + first + i + 1, keys) : keys;
  };
  for (std::int64_t i = 0; i < M; ++i) {
    T* const row = rows + i * stride;
    const std::int64_t seen = seen_by(i);
    for (std::int64_t j = 0; j < seen; ++j) row[j] *= scale;
    if (of.bias != nullptr) {
      const T* const bias = of.bias_of(h) - (first + i);
      for (std::int64_t j = of.prefix_length; j < seen; ++j) row[j] += bias[j - of.prefix_length];
    }
    const T largest = largest_of<kLanes>(seen, row);
    for (std::int64_t j = 0; j < seen; ++j) row[j] = exponential(row[j] - largest);
  }
  // Sums each row in the order of its keys, several rows in parallel.
  const std::int64_t seen_by_all = seen_by(0);
  T sums[M] = {};
  for (std::int64_t j = 0; j < seen_by_all; ++j) {
    for (std::int64_t i = 0; i < M; ++i) sums[i] += rows[i * stride + j];
  }
  for (std::int64_t i = 0; i < M; ++i) {
    T* const row = rows + i * stride;
    const std::int64_t seen = seen_by(i);
    T sum = sums[i];
    for (std::int64_t j = seen_by_all; j < seen; ++j) sum += row[j];
    const T factor = 1 / sum;
    for (std::int64_t j = 0; j < seen; ++j) row[j] *= factor;
    for (std::int64_t j = seen; j < stride; ++j) row[j] = 0;
  }
}

/// to_probabilities() of one query of an attention with a window, with zeros for the hidden keys.
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void to_window_probabilities(const SequenceAttention<T>& of, std::int64_t h,
                                           std::int64_t query, T scale, std::int64_t stride,
                                           T* row) {
  const std::int64_t first = of.prefix_length + std::max<std::int64_t>(0, query - of.window);
  const std::int64_t last = of.causal ? query : std::min(of.tokens - 1, query + of.window);
  const std::int64_t end = of.prefix_length + last + 1;
  // Moves the seen keys together: the prefix, then the window.
  const std::int64_t gap = first - of.prefix_length;
  T* const seen = row + gap;
  for (std::int64_t j = of.prefix_length; j-- > 0;) seen[j] = row[j];
  const std::int64_t n = end - gap;
  for (std::int64_t j = 0; j < n; ++j) seen[j] *= scale;
  if (of.bias != nullptr) {
    const T* const bias = of.bias_of(h) - query - of.prefix_length;
    for (std::int64_t j = first; j < end; ++j) row[j] += bias[j];
  }
  const T largest = largest_of<kLanes>(n, seen);
  for (std::int64_t j = 0; j < n; ++j) seen[j] = exponential(seen[j] - largest);
  T sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += seen[j];
  const T factor = 1 / sum;
  for (std::int64_t j = 0; j < n; ++j) seen[j] *= factor;
  for (std::int64_t j = 0; j < of.prefix_length; ++j) row[j] = seen[j];
  for (std::int64_t j = of.prefix_length; j < first; ++j) row[j] = 0;
  for (std::int64_t j = end; j < stride; ++j) row[j] = 0;
}

/// The same for all queries of head h, in place in `rows` (queries, stride).
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void to_all_probabilities(const SequenceAttention<T>& of, std::int64_t h, T scale,
                                        std::int64_t stride, T* rows) {
  if (of.window >= 0) {
    for (std::int64_t i = 0; i < of.queries; ++i) {
      to_window_probabilities<kLanes>(of, h, i, scale, stride, rows + i * stride);
    }
    return;
  }
  by_rows(of.queries, [&](auto count, std::int64_t i) PETLAB_INLINE_LAMBDA {
    to_probabilities<kLanes, count.value>(of, h, i, scale, stride, rows + i * stride);
  });
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

/// Forward for few queries: reads keys and values in place.
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void forward_of_few(const SequenceAttention<T>& of, T* output, T* probabilities) {
  const std::int64_t d_model = of.heads * of.d_head;
  const std::int64_t keys = of.keys();
  const std::int64_t stride = (keys + kBlock - 1) / kBlock * kBlock;
  const T scale = of.scaled ? 1 / std::sqrt(static_cast<T>(of.d_head)) : 1;
  for (std::int64_t h = 0; h < of.heads; ++h) {
    T* const p = probabilities + h * of.queries * stride;
    const std::int64_t head_begin = h * of.d_head;
    for (std::int64_t j = 0; j < keys; ++j) {
      const T* const key = row_of(of, of.prefix_key, of.key, j) + head_begin;
      for (std::int64_t i = 0; i < of.queries; ++i) {
        p[i * stride + j] = dot(of.d_head, of.query + i * d_model + head_begin, key);
      }
    }
    to_all_probabilities<kLanes>(of, h, scale, stride, p);
    for (std::int64_t i = 0; i < of.queries; ++i) {
      const T* const row = p + i * stride;
      T* const to = output + i * d_model + head_begin;
      std::int64_t c = 0;
      for (; c + kBlock <= of.d_head; c += kBlock) {
        Vector<T> sums = {};
        for (std::int64_t j = 0; j < keys; ++j) {
          const T* const value = row_of(of, of.prefix_value, of.value, j) + head_begin + c;
          sums += row[j] * *reinterpret_cast<const Vector<T>*>(value);
        }
        *reinterpret_cast<Vector<T>*>(to + c) = sums;
      }
      for (; c < of.d_head; ++c) {
        T sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          sum += row[j] * row_of(of, of.prefix_value, of.value, j)[head_begin + c];
        }
        to[c] = sum;
      }
    }
  }
}

template <std::int64_t kLanes, typename T>
PETLAB_INLINE void forward(const SequenceAttention<T>& of, const T* multipliers, T* output,
                           T* probabilities, T* room) {
  if (of.queries <= kFewQueries && multipliers == nullptr) {
    forward_of_few<kLanes>(of, output, probabilities);
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
    transpose_head(of, of.prefix_key, of.key, h, stride, columns);
    multiply<kLanes>(of.queries, stride, of.d_head, of.query + h * of.d_head, d_model, 1, columns,
                     stride, p, stride);
    to_all_probabilities<kLanes>(of, h, scale, stride, p);
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
    gather_head<kLanes>(of, of.prefix_value, of.value, h, rows);
    multiply<kLanes>(of.queries, of.d_head, keys, used, stride, 1, rows, of.d_head,
                     output + h * of.d_head, d_model);
  }
}

/// Softmax's backward pass for one query. `kept` receives its probabilities after dropout. On entry
/// `gradient` holds the gradients of those, on return the gradients of the scores.
template <typename T>
PETLAB_INLINE void to_score_gradients(std::int64_t keys, const T* row, T dropout_scale, T scale,
                                      T* kept, T* gradient) {
  T sum = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    kept[j] = row[j] > 0 ? row[j] * dropout_scale : 0;
    sum += kept[j] * gradient[j];
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    const T to_probability = row[j] > 0 ? gradient[j] * dropout_scale : 0;
    gradient[j] = (row[j] > 0 ? row[j] : -row[j]) * (to_probability - sum) * scale;
  }
}

/// The gradients of a head's keys or values, (keys, d_head) = aᵀ · b, for a (queries, stride) and
/// rows of b d_model apart. The prefix's part goes to `prefix`, the sequence's to `rows`.
template <std::int64_t kLanes, typename T>
PETLAB_INLINE void multiply_to_keys(const SequenceAttention<T>& of, std::int64_t stride, const T* a,
                                    const T* b, T* prefix, T* rows) {
  const std::int64_t d_model = of.heads * of.d_head;
  multiply<kLanes>(of.prefix_length, of.d_head, of.queries, a, 1, stride, b, d_model, prefix,
                   d_model);
  multiply<kLanes>(of.tokens, of.d_head, of.queries, a + of.prefix_length, 1, stride, b, d_model,
                   rows, d_model);
}

template <std::int64_t kLanes, typename T>
PETLAB_INLINE void backward(const SequenceAttention<T>& of, const T* output_gradient,
                            const T* probabilities, T dropout_scale,
                            const AttentionGradients<T>& gradients, T* room) {
  const std::int64_t d_model = of.heads * of.d_head;
  const std::int64_t keys = of.keys();
  const std::int64_t stride = (keys + kBlock - 1) / kBlock * kBlock;
  const T scale = of.scaled ? 1 / std::sqrt(static_cast<T>(of.d_head)) : 1;
  T* const rows = room;
  T* const columns = rows + keys * of.d_head;
  T* const kept = columns + stride * of.d_head;  // probabilities after dropout
  T* const to_scores =
      kept + of.queries * stride;  // gradients of the probabilities, then of the scores
  const auto part_of = [&](T* all, std::int64_t h) PETLAB_INLINE_LAMBDA {
    return all == nullptr ? nullptr : all + h * of.d_head;
  };
  for (std::int64_t h = 0; h < of.heads; ++h) {
    const T* const p = probabilities + h * of.queries * stride;
    const T* const to_output = output_gradient + h * of.d_head;
    transpose_head(of, of.prefix_value, of.value, h, stride, columns);
    multiply<kLanes>(of.queries, stride, of.d_head, to_output, d_model, 1, columns, stride,
                     to_scores, stride);
    for (std::int64_t i = 0; i < of.queries; ++i) {
      to_score_gradients(keys, p + i * stride, dropout_scale, scale, kept + i * stride,
                         to_scores + i * stride);
    }
    if (gradients.bias != nullptr) {
      for (std::int64_t i = 0; i < of.queries; ++i) {
        const T* const gradient = to_scores + i * stride;
        T* const to_bias = gradients.bias + (of.bias_of(h) - of.bias) - i;
        for (std::int64_t j = of.prefix_length; j < keys; ++j) {
          to_bias[j - of.prefix_length] += gradient[j] / scale;
        }
      }
    }
    multiply_to_keys<kLanes>(of, stride, kept, to_output, part_of(gradients.prefix_value, h),
                             part_of(gradients.value, h));
    gather_head<kLanes>(of, of.prefix_key, of.key, h, rows);
    multiply<kLanes>(of.queries, of.d_head, keys, to_scores, stride, 1, rows, of.d_head,
                     gradients.query + h * of.d_head, d_model);
    multiply_to_keys<kLanes>(of, stride, to_scores, of.query + h * of.d_head,
                             part_of(gradients.prefix_key, h), part_of(gradients.key, h));
  }
}

#if defined(PETLAB_WIDE)
template <typename T>
PETLAB_WIDE void wide_forward(const SequenceAttention<T>& of, const T* multipliers, T* output,
                              T* probabilities, T* room) {
  forward<kWideLanes>(of, multipliers, output, probabilities, room);
}
template <typename T>
PETLAB_WIDE void wide_backward(const SequenceAttention<T>& of, const T* output_gradient,
                               const T* probabilities, T dropout_scale,
                               const AttentionGradients<T>& gradients, T* room) {
  backward<kWideLanes>(of, output_gradient, probabilities, dropout_scale, gradients, room);
}
#endif

// Clones need plain functions: templates cannot have them.
PETLAB_NARROW_CLONES void narrow_forward(const SequenceAttention<float>& of,
                                         const float* multipliers, float* output,
                                         float* probabilities, float* room) {
  forward<kNarrowLanes>(of, multipliers, output, probabilities, room);
}
PETLAB_NARROW_CLONES void narrow_forward(const SequenceAttention<double>& of,
                                         const double* multipliers, double* output,
                                         double* probabilities, double* room) {
  forward<kNarrowLanes>(of, multipliers, output, probabilities, room);
}
PETLAB_NARROW_CLONES void narrow_backward(const SequenceAttention<float>& of,
                                          const float* output_gradient, const float* probabilities,
                                          float dropout_scale,
                                          const AttentionGradients<float>& gradients, float* room) {
  backward<kNarrowLanes>(of, output_gradient, probabilities, dropout_scale, gradients, room);
}
PETLAB_NARROW_CLONES void narrow_backward(const SequenceAttention<double>& of,
                                          const double* output_gradient,
                                          const double* probabilities, double dropout_scale,
                                          const AttentionGradients<double>& gradients,
                                          double* room) {
  backward<kNarrowLanes>(of, output_gradient, probabilities, dropout_scale, gradients, room);
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

template <typename T>
void forward_with([[maybe_unused]] VectorWidth vectors, const SequenceAttention<T>& of,
                  const T* multipliers, T* output, T* probabilities) {
#if defined(PETLAB_WIDE)
  if (vectors == VectorWidth::widest && has_wide_vectors()) {
    wide_forward(of, multipliers, output, probabilities, room_for(of));
    return;
  }
#endif
  narrow_forward(of, multipliers, output, probabilities, room_for(of));
}

template <typename T>
void backward_with([[maybe_unused]] VectorWidth vectors, const SequenceAttention<T>& of,
                   const T* output_gradient, const T* probabilities, T dropout_scale,
                   const AttentionGradients<T>& gradients) {
#if defined(PETLAB_WIDE)
  if (vectors == VectorWidth::widest && has_wide_vectors()) {
    wide_backward(of, output_gradient, probabilities, dropout_scale, gradients, room_for(of));
    return;
  }
#endif
  narrow_backward(of, output_gradient, probabilities, dropout_scale, gradients, room_for(of));
}

}  // namespace

std::int64_t probability_stride(std::int64_t keys) { return (keys + kBlock - 1) / kBlock * kBlock; }

void attention_forward(const SequenceAttention<float>& of, const float* multipliers, float* output,
                       float* probabilities, VectorWidth vectors) {
  forward_with(vectors, of, multipliers, output, probabilities);
}
void attention_forward(const SequenceAttention<double>& of, const double* multipliers,
                       double* output, double* probabilities, VectorWidth vectors) {
  forward_with(vectors, of, multipliers, output, probabilities);
}
void attention_backward(const SequenceAttention<float>& of, const float* output_gradient,
                        const float* probabilities, float dropout_scale,
                        const AttentionGradients<float>& gradients, VectorWidth vectors) {
  backward_with(vectors, of, output_gradient, probabilities, dropout_scale, gradients);
}
void attention_backward(const SequenceAttention<double>& of, const double* output_gradient,
                        const double* probabilities, double dropout_scale,
                        const AttentionGradients<double>& gradients, VectorWidth vectors) {
  backward_with(vectors, of, output_gradient, probabilities, dropout_scale, gradients);
}

}  // namespace petlab::trainer
