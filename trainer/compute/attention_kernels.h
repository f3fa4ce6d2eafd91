#pragma once

#include <cstdint>

namespace petlab::trainer {

// The inner loops of attention on a CPU, without LibTorch: one thread's share each, compiled for
// several instruction sets of which the best is taken at run time. T is float or double.

/// One sequence's attention, all heads. Rows of query, key, value and of the gradients are
/// d_model = heads · d_head apart.
template <typename T>
struct SequenceAttention {
  std::int64_t heads = 1;
  std::int64_t d_head = 1;
  std::int64_t queries = 0;        // the first tokens of the sequence
  std::int64_t tokens = 0;         // of the sequence itself
  std::int64_t prefix_length = 0;  // keys and values that stand before them
  const T* query = nullptr;        // (queries, d_model)
  const T* key = nullptr;          // (tokens, d_model)
  const T* value = nullptr;
  const T* prefix_key = nullptr;  // (prefix_length, d_model)
  const T* prefix_value = nullptr;
  bool scaled = true;   // scores are divided by sqrt(d_head)
  bool causal = false;  // query i sees the tokens up to i, and the prefix
  /// (heads, 2 · longest - 1), added to the scores: head h's for a token `distance` behind its
  /// query is at h · (2 · longest - 1) + longest - 1 + distance. A prefix has none. nullptr: none
  /// at all.
  const T* bias = nullptr;
  std::int64_t longest = 0;  // queries and tokens of a sequence are at most this many
  /// (tokens): the rows of key and value in which they lie; nullptr: 0, 1, … Forward alone.
  const std::int64_t* key_rows = nullptr;
  const T* bias_of(std::int64_t head) const {
    return bias + head * (2 * longest - 1) + longest - 1;
  }
  std::int64_t keys() const { return prefix_length + tokens; }
};

/// Numbers between the rows of a sequence's probabilities: `keys`, rounded up for the vector units.
std::int64_t probability_stride(std::int64_t keys);

/// With which vectors: `narrow` are those of a processor without vectors of 64 bytes.
enum class VectorWidth : std::uint8_t { widest, narrow };

/// output (queries, d_model). `multipliers` (queries, heads, keys) is dropout's, or nullptr.
/// `probabilities` (heads, queries, probability_stride) gets what backward needs: the softmax,
/// negative where dropout took it away.
void attention_forward(const SequenceAttention<float>& of, const float* multipliers, float* output,
                       float* probabilities, VectorWidth vectors = VectorWidth::widest);
void attention_forward(const SequenceAttention<double>& of, const double* multipliers,
                       double* output, double* probabilities,
                       VectorWidth vectors = VectorWidth::widest);

/// Where a sequence's gradients go: each but that of the bias is written, not added to.
template <typename T>
struct AttentionGradients {
  T* query = nullptr;         // (queries, d_model)
  T* key = nullptr;           // (tokens, d_model)
  T* value = nullptr;         // (tokens, d_model)
  T* prefix_key = nullptr;    // (prefix_length, d_model)
  T* prefix_value = nullptr;  // (prefix_length, d_model)
  T* bias = nullptr;          // as SequenceAttention::bias; added to. nullptr: not wanted
};

/// `output_gradient` (queries, d_model); `dropout_scale` is 1 / (1 - p), 1 without dropout.
void attention_backward(const SequenceAttention<float>& of, const float* output_gradient,
                        const float* probabilities, float dropout_scale,
                        const AttentionGradients<float>& gradients,
                        VectorWidth vectors = VectorWidth::widest);
void attention_backward(const SequenceAttention<double>& of, const double* output_gradient,
                        const double* probabilities, double dropout_scale,
                        const AttentionGradients<double>& gradients,
                        VectorWidth vectors = VectorWidth::widest);

}  // namespace petlab::trainer
