// The arguments of petlab's kernels, for the host's compiler and the device's. Pointers are to
// device memory.
#pragma once

/// Warps per block of attention's kernels. With them, rows of up to 512 bytes fit in the 48 KiB of
/// shared memory that every GPU has.
constexpr int attention_warps(int d_head, int bytes_of_sum) {
  return d_head * bytes_of_sum > 256 ? 2 : 4;
}
constexpr int kAttentionRowsAWarp = 4;

/// Dropout of several places on the same rows (dropout_draws.h). Row r is (r / inner, r % inner).
struct DropoutArguments {
  static constexpr int kMostPlaces = 96;

  /// The keys that dropout_round_keys returns. The kernel reads those of the first round.
  const long long* round_keys;
  int of_place[kMostPlaces];  // index of each place's first key in round_keys
  int trials;                 // number of keys per word; they are contiguous
  int word_stride;            // distance from a key's first word to its second
  // Row (o, i) has index o * outer stride + i * inner stride in each.
  const long long* trial;
  const long long* example;
  const long long* position;
  int trial_strides[2], example_strides[2], position_strides[2];  // outer, inner
  long long places, rows, inner, width;
  unsigned step;
  unsigned dropped;     // the lowest of 65536 values that mean 0
  unsigned char* kept;  // (places, rows, width)
};

/// Warps per block of the kernels of rows. A warp computes a row, a lane of it rows_size(width)
/// times eight numbers, at most kMostRowsSize, so that they fit in registers.
constexpr int kRowsABlock = 4;
constexpr int kMostRowsSize = 8;
constexpr long long rows_size(long long width) { return (width + 255) / 256; }

/// Dropout of rows at one place, as fill_dropout draws it.
struct RowDropout {
  const long long* round_keys;  // of the place, as in DropoutArguments
  int word_stride;
  int trials;
  const long long* trial;  // (rows); not read if there is one trial
  const long long* example;
  const long long* position;
  unsigned step;
  unsigned dropped;  // the lowest of 65536 values that mean 0; 0: without dropout
  float kept_scale;  // multiplier of a number that is kept
};

/// norm((drop(x) + z) + y), drop(x) + y alone, and their gradients. All but `inverse` and `dropout`
/// have the number's type, and the shape (rows, width) unless it is given.
struct RowArguments {
  RowDropout dropout;
  long long rows, width;
  const void* x;
  const void* y;  // or null
  const void* z;  // only for a norm; or null
  void* output;
  // For a norm.
  const void* weight;  // (width)
  const void* bias;    // (width)
  double eps;
  void* dropped;     // drop(x), or null
  void* normalised;  // (output - bias) / weight, for backward; or null
  void* inverse;     // (rows) of the sum's type: 1 / deviation; only with `normalised`
  // Backward of a norm.
  const void* output_gradient;   // or null
  const void* dropped_gradient;  // or null
  void* x_gradient;              // or null
  void* y_gradient;              // also that of z
};

/// Threads of a block that selects a mask.
constexpr int kMaskThreads = 1024;

/// Masks of learned scores (mask_selection.h): in each row, `zeros` numbers of the smallest
/// magnitude become 0 and the others 1; of equal ones, the first become 0.
struct MaskArguments {
  const void* scores;  // (rows, width) of the number's type: float or double
  void* masks;         // likewise
  long long width, zeros;
};

/// Attention of packed sequences (attention.h) and its gradients. Sequence s has the queries
/// [query_starts[s], query_starts[s + 1]) and sees its trial's prefix and, after it, the keys
/// [key_starts[s], key_starts[s + 1]).
struct AttentionArguments {
  // (rows, heads * d_head) of the number's type. Rows of query, key and value may be apart.
  const void* query;
  const void* key;
  const void* value;
  int query_stride, key_stride, value_stride;  // from a row to the next, in numbers
  const void* prefix_key;                      // (trials, prefix, heads * d_head)
  const void* prefix_value;
  const void* bias;  // (heads, 2 * longest - 1), or null
  const int* query_starts;
  const int* key_starts;
  const long long* trial;    // (sequences)
  const long long* example;  // (sequences)
  // The keys of this layer's dropout, as in DropoutArguments.
  const long long* round_keys;
  int word_stride;
  unsigned step;
  unsigned dropped;  // 0: without dropout
  float kept_scale;  // multiplier of a probability that is kept
  int heads, prefix, longest, causal;
  double scale;  // of the scores
  int sequences;
  long long query_rows, key_rows;  // with filling rows after the last sequence's
  void* output;                    // (query rows, heads * d_head)
  void* log_sums;                  // (heads, query rows) of the sum's type, or null
  // Backward.
  const void* output_gradient;
  void* deltas;  // (heads, query rows) of the sum's type: output times its gradient
  void* query_gradient;
  void* key_gradient;
  void* value_gradient;
  int gradient_stride;        // of these three
  void* prefix_key_gradient;  // (sequences, prefix, heads * d_head)
  void* prefix_value_gradient;
};
