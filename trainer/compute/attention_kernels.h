#pragma once

#include <cstdint>

namespace petlab::trainer {

// The inner loops of attention on a CPU, without LibTorch. Each call is one thread's share. They
// are compiled for several instruction sets; the best is chosen at run time. T is float or double.

/// The attention of one sequence, over all heads. Rows of query, key, value and their gradients are
/// d_model = heads · d_head apart.
template <typename T>
struct SequenceAttention {
  std::int64_t heads = 1;
  std::int64_t d_head = 1;
  std::int64_t queries = 0;        // they belong to the first tokens of the sequence
  std::int64_t tokens = 0;         // of the sequence, without the prefix
  std::int64_t prefix_length = 0;  // keys and values before the sequence's own
  const T* query = nullptr;        // (queries, d_model)
  const T* key = nullptr;          // (tokens, d_model)
  const T* value = nullptr;
  const T* prefix_key = nullptr;  // (prefix_length, d_model)
  const T* prefix_value = nullptr;
  bool scaled = true;   // scores are divided by sqrt(d_head)
  bool causal = false;  // query i sees the tokens up to i, and the prefix
  /// Query i sees the tokens from i - window to i + window, and the prefix. -1: all tokens.
  std::int64_t window = -1;
  /// (heads, 2 · longest - 1), added to the scores. For head h and a token `distance` after its
  /// query, the index is h · (2 · longest - 1) + longest - 1 + distance. Prefixes get no bias.
  /// nullptr: none.
  const T* bias = nullptr;
  std::int64_t longest = 0;  // upper bound for the queries and the tokens of a sequence
  /// (tokens): their rows in key and value; nullptr: 0, 1, … Only for forward.
  const std::int64_t* key_rows = nullptr;
  const T* bias_of(std::int64_t head) const {
    return bias + head * (2 * longest - 1) + longest - 1;
  }
  std::int64_t keys() const { return prefix_length + tokens; }
};

/// The distance between rows of a sequence's probabilities: `keys`, rounded up for vectors.
std::int64_t probability_stride(std::int64_t keys);

/// The vectors to use. `narrow` selects the code for processors without 64-byte vectors.
enum class VectorWidth : std::uint8_t { widest, narrow };

/// Writes output (queries, d_model). `multipliers` (queries, heads, keys) are dropout's, or
/// nullptr. `probabilities` (heads, queries, probability_stride) receives the softmax for backward;
/// dropped probabilities have a negative sign.
void attention_forward(const SequenceAttention<float>& of, const float* multipliers, float* output,
                       float* probabilities, VectorWidth vectors = VectorWidth::widest);
void attention_forward(const SequenceAttention<double>& of, const double* multipliers,
                       double* output, double* probabilities,
                       VectorWidth vectors = VectorWidth::widest);

/// The destinations of a sequence's gradients. Each is overwritten, except the bias, which is added
/// to.
template <typename T>
struct AttentionGradients {
  T* query = nullptr;         // (queries, d_model)
  T* key = nullptr;           // (tokens, d_model)
  T* value = nullptr;         // (tokens, d_model)
  T* prefix_key = nullptr;    // (prefix_length, d_model)
  T* prefix_value = nullptr;  // (prefix_length, d_model)
  T* bias = nullptr;          // as SequenceAttention::bias; nullptr: not needed
};

/// `output_gradient` is (queries, d_model). `dropout_scale` is 1 / (1 - p), or 1 without dropout.
void attention_backward(const SequenceAttention<float>& of, const float* output_gradient,
                        const float* probabilities, float dropout_scale,
                        const AttentionGradients<float>& gradients,
                        VectorWidth vectors = VectorWidth::widest);
void attention_backward(const SequenceAttention<double>& of, const double* output_gradient,
                        const double* probabilities, double dropout_scale,
                        const AttentionGradients<double>& gradients,
                        VectorWidth vectors = VectorWidth::widest);

}  // namespace petlab::trainer
