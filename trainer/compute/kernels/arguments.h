// What petlab's kernels are launched with: read by the host's compiler and by the device's.
// Pointers are to the device's memory.
#pragma once

/// Of a block of attention's kernels, so that a block's rows fit in the shared memory that every
/// GPU gives: heads of up to 512 bytes a row.
constexpr int attention_warps(int d_head, int bytes_of_sum) {
  return d_head * bytes_of_sum > 256 ? 2 : 4;
}
constexpr int kAttentionRowsAWarp = 4;

/// Dropout of several places for the same rows (dropout_draws.h). Row r is (r / inner, r % inner).
struct DropoutArguments {
  static constexpr int kMostPlaces = 96;

  /// Philox's keys as dropout_round_keys makes them, of which the first round's are read.
  const long long* round_keys;
  int of_place[kMostPlaces];  // where the keys of each place begin in round_keys
  int trials;                 // of the keys, which lie side by side
  int word_stride;            // from a key's first word to its second
  // Of row (o, i): number o * outer_stride + i * inner_stride of each.
  const long long* trial;
  const long long* example;
  const long long* position;
  int trial_strides[2], example_strides[2], position_strides[2];  // outer, inner
  long long places, rows, inner, width;
  unsigned step;
  unsigned dropped;     // of 65536 values, the lowest
  unsigned char* kept;  // (places, rows, width)
};

/// Attention of packed sequences (attention.h) and its gradients. Sequence s has the queries
/// [query_starts[s], query_starts[s + 1]) and sees its trial's prefix and, after it, the keys
/// [key_starts[s], key_starts[s + 1]).
struct AttentionArguments {
  // (rows, heads * d_head) of the number's type.
  const void* query;
  const void* key;
  const void* value;
  const void* prefix_key;  // (trials, prefix, heads * d_head)
  const void* prefix_value;
  const void* bias;  // (heads, 2 * longest - 1), or null
  const int* query_starts;
  const int* key_starts;
  const long long* trial;    // (sequences)
  const long long* example;  // (sequences)
  // Philox's keys of this layer's dropout, as in DropoutArguments.
  const long long* round_keys;
  int word_stride;
  unsigned step;
  unsigned dropped;  // 0: without dropout
  float kept_scale;  // of what is not dropped
  int heads, prefix, longest, causal;
  double scale;  // of the scores
  long long query_rows;
  void* output;    // (query rows, heads * d_head)
  void* log_sums;  // (heads, query rows) of the sum's type; null: not wanted
  // Backward.
  const void* output_gradient;
  void* deltas;  // (heads, query rows) of the sum's type: output times its gradient
  void* query_gradient;
  void* key_gradient;
  void* value_gradient;
  void* prefix_key_gradient;  // (sequences, prefix, heads * d_head)
  void* prefix_value_gradient;
};
