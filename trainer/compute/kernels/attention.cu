// Attention of packed sequences, forward and backward. A block computes some queries (or keys) of
// one head of a sequence and visits the keys (or queries) 32 at a time. A warp computes four of its
// queries; each lane handles one of the 32 keys. Scores are not stored: backward computes them
// again. No two blocks add to the same number, so sums have a fixed order. Behind the blocks of the
// last sequence are those of the rows that belong to none.

constexpr int D_HEAD = SIZE;
constexpr int kWarps = attention_warps(D_HEAD, sizeof(Sum));
constexpr int kEach = kAttentionRowsAWarp;  // queries (or keys) per warp
constexpr int kOwn = kWarps * kEach;
constexpr int kColumns = (D_HEAD + kLanes - 1) / kLanes;  // per lane
/// Any 32 consecutive numbers span at most five of Philox's blocks of eight.
constexpr int kDrawnBlocks = 5;

/// An odd number of fours, so that lanes that read four numbers of different rows use different banks.
constexpr int kRowFours = (D_HEAD + 3) / 4 | 1;
struct alignas(16) Row {
  Sum at[kRowFours * 4];
};

__device__ inline Sum no_score() { return -(Sum)__int_as_float(0x7F800000); }

/// One head of one sequence.
struct Sequence {
  const AttentionArguments& a;
  int number, head, trial;
  long long first_query, first_key;
  int queries, keys;  // keys include the prefix

  __device__ Sequence(const AttentionArguments& of)
      : a(of), number(blockIdx.z), head(blockIdx.y) {
    trial = (int)a.trial[number];
    first_query = a.query_starts[number];
    first_key = a.key_starts[number];
    queries = a.query_starts[number + 1] - (int)first_query;
    keys = a.prefix + a.key_starts[number + 1] - (int)first_key;
  }

  /// The index of query q's first number, in rows that are `stride` numbers apart.
  __device__ long long query_at(int q, int stride) const {
    return (first_query + q) * stride + head * D_HEAD;
  }
  __device__ long long query_at(int q) const { return query_at(q, a.heads * D_HEAD); }
  __device__ long long row_at(int k, int stride) const {
    return (first_key + k - a.prefix) * stride + head * D_HEAD;
  }
  __device__ long long prefix_at(long long of, int k) const {
    return ((of * a.prefix + k) * a.heads + head) * D_HEAD;
  }
  /// Key k's numbers, in the prefix or in `rows`.
  __device__ const Number* key(const void* rows, int stride, const void* prefix, int k) const {
    return k < a.prefix ? (const Number*)prefix + prefix_at(trial, k)
                        : (const Number*)rows + row_at(k, stride);
  }
  __device__ bool sees(int q, int k) const {
    return q < queries && k < keys && (!a.causal || k - a.prefix <= q);
  }
  __device__ Sum bias(int q, int k) const {
    if (a.bias == nullptr || k < a.prefix) return 0;
    const int distance = k - a.prefix - q + a.longest - 1;
    return sum_of(((const Number*)a.bias)[head * (2 * a.longest - 1) + distance]);
  }
  /// A block of the random numbers of query q, which has one for each head and key.
  __device__ Words draw(int q, unsigned block) const {
    return philox(block, (unsigned)q, (unsigned)a.example[number], a.step,
                  (unsigned)a.round_keys[trial], (unsigned)a.round_keys[a.word_stride + trial]);
  }
  __device__ unsigned drawn_number(int k) const { return (unsigned)(head * keys + k); }
};

/// Loads `count` rows times `scale`. source(i) points to row i, or is null for a row of zeros.
template <typename Source>
__device__ inline void load(Row* to, int count, Sum scale, const Source& source) {
  for (int i = threadIdx.x; i < count * D_HEAD; i += kWarps * kLanes) {
    const Number* row = source(i / D_HEAD);
    to[i / D_HEAD].at[i % D_HEAD] = row == nullptr ? 0 : sum_of(row[i % D_HEAD]) * scale;
  }
}

/// Loads `count` keys and values from key `first` on, zeros after the last.
__device__ inline void load_keys(const Sequence& s, Row* keys, Row* values, int count, int first) {
  load(keys, count, 1, [&](int i) {
    return first + i < s.keys ? s.key(s.a.key, s.a.key_stride, s.a.prefix_key, first + i) : nullptr;
  });
  load(values, count, 1, [&](int i) {
    return first + i < s.keys ? s.key(s.a.value, s.a.value_stride, s.a.prefix_value, first + i) : nullptr;
  });
}

/// Loads `count` rows times `scale` from query `first` on, zeros after the last.
__device__ inline void load_rows(const Sequence& s, Row* to, const void* rows, int stride, int count,
                                 int first, Sum scale) {
  load(to, count, scale, [&](int i) {
    return first + i < s.queries ? (const Number*)rows + s.query_at(first + i, stride) : nullptr;
  });
}
__device__ inline void load_queries(const Sequence& s, Row* to, int count, int first) {
  load_rows(s, to, s.a.query, s.a.query_stride, count, first, (Sum)s.a.scale);
}
__device__ inline void load_gradients(const Sequence& s, Row* to, int count, int first) {
  load_rows(s, to, s.a.output_gradient, s.a.heads * D_HEAD, count, first, 1);
}

/// The products of one row with kEach others.
__device__ inline void multiply(Sum (&products)[kEach], const Row& one, const Row* others) {
#pragma unroll
  for (int e = 0; e < kEach; ++e) products[e] = 0;
#pragma unroll 16
  for (int d = 0; d < D_HEAD; ++d) {
    const Sum of_one = one.at[d];
#pragma unroll
    for (int e = 0; e < kEach; ++e) products[e] += others[e].at[d] * of_one;
  }
}

/// Adds rows[i] times lane i's weights, for all lanes i of the warp.
__device__ inline void add_rows(Sum (&sums)[kEach][kColumns], const Sum (&weights)[kEach],
                                const Row* rows, int lane) {
#pragma unroll 8
  for (int i = 0; i < kLanes; ++i) {
    Sum of_rows[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int d = c * kLanes + lane;
      of_rows[c] = d < D_HEAD ? rows[i].at[d] : 0;
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const Sum weight = __shfl_sync(kAll, weights[e], i);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[e][c] += weight * of_rows[c];
    }
  }
}

__device__ inline void write(Number* to, const Sum (&sums)[kColumns], Sum scale, int lane) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int d = c * kLanes + lane;
    if (d < D_HEAD) to[d] = number_of(sums[c] * scale);
  }
}

__device__ inline Sum warp_max(Sum of) {
#pragma unroll
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    const Sum other = __shfl_xor_sync(kAll, of, apart);
    of = of < other ? other : of;
  }
  return of;
}

/// Writes zeros to a head's columns of the rows from `first` on, this block's share.
__device__ inline void write_filling(void* to, int stride, int first, long long rows) {
  const long long own = first + (long long)blockIdx.x * kOwn;
  for (int i = threadIdx.x; i < kOwn * D_HEAD; i += kWarps * kLanes) {
    const long long row = own + i / D_HEAD;
    if (row < rows) ((Number*)to)[row * stride + blockIdx.y * D_HEAD + i % D_HEAD] = number_of(0);
  }
}

/// Dropout's multipliers for a warp's queries and 32 keys.
struct Kept {
  unsigned words[kEach][kDrawnBlocks * 4];

  __device__ void draw(const Sequence& s, int first_query, int first_key, int lane) {
    if (s.a.dropped == 0) return;
    __syncwarp();
    if (lane < kEach * kDrawnBlocks) {
      const Words drawn = s.draw(first_query + lane / kDrawnBlocks,
                                 s.drawn_number(first_key) / 8 + lane % kDrawnBlocks);
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        words[lane / kDrawnBlocks][lane % kDrawnBlocks * 4 + w] = drawn.word[w];
      }
    }
    __syncwarp();
  }
  __device__ Sum multiplier(const Sequence& s, int of_query, int first_key, int lane) const {
    if (s.a.dropped == 0) return 1;
    const unsigned first = s.drawn_number(first_key);
    const unsigned i = first % 8 + lane;
    return sixteen_bits(words[of_query], i) >= s.a.dropped ? (Sum)s.a.kept_scale : 0;
  }
};

KERNEL __launch_bounds__(kWarps* kLanes) attention_forward(AttentionArguments a) {
  if ((int)blockIdx.z == a.sequences) {
    return write_filling(a.output, a.heads * D_HEAD, a.query_starts[a.sequences], a.query_rows);
  }
  __shared__ Row keys[kLanes], values[kLanes], queries[kOwn];
  __shared__ Kept kept[kWarps];
  const Sequence s(a);
  const int first = blockIdx.x * kOwn;
  if (first >= s.queries) return;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int own = first + warp * kEach;
  load_queries(s, queries, kOwn, first);
  Sum most[kEach], total[kEach], sums[kEach][kColumns];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    most[e] = no_score();
    total[e] = 0;
    for (int c = 0; c < kColumns; ++c) sums[e][c] = 0;
  }
  for (int k = 0; k < s.keys; k += kLanes) {
    if (a.causal && k - a.prefix > first + kOwn - 1) break;
    __syncthreads();
    load_keys(s, keys, values, kLanes, k);
    __syncthreads();
    kept[warp].draw(s, own, k, lane);
    Sum scores[kEach], weights[kEach];
    multiply(scores, keys[lane], queries + warp * kEach);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const bool seen = s.sees(own + e, k + lane);
      const Sum score = seen ? scores[e] + s.bias(own + e, k + lane) : no_score();
      const Sum higher = warp_max(score);
      const Sum now = most[e] < higher ? higher : most[e];
      const Sum probability = seen ? exp(score - now) : 0;
      const Sum before = most[e] == now ? (Sum)1 : exp(most[e] - now);
      most[e] = now;
      total[e] = total[e] * before + warp_sum(probability);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[e][c] *= before;
      weights[e] = probability * kept[warp].multiplier(s, e, k, lane);
    }
    add_rows(sums, weights, values, lane);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int q = own + e;
    if (q >= s.queries) break;
    write((Number*)a.output + s.query_at(q), sums[e], total[e] > 0 ? 1 / total[e] : 0, lane);
    if (a.log_sums != nullptr && lane == 0) {
      ((Sum*)a.log_sums)[s.head * a.query_rows + s.first_query + q] = most[e] + log(total[e]);
    }
  }
}

/// Computes the gradient of the queries, and each query's delta.
KERNEL __launch_bounds__(kWarps* kLanes) attention_to_query(AttentionArguments a) {
  if ((int)blockIdx.z == a.sequences) {
    return write_filling(a.query_gradient, a.gradient_stride, a.query_starts[a.sequences], a.query_rows);
  }
  __shared__ Row keys[kLanes], values[kLanes], queries[kOwn], gradients[kOwn];
  __shared__ Kept kept[kWarps];
  const Sequence s(a);
  const int first = blockIdx.x * kOwn;
  if (first >= s.queries) return;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int own = first + warp * kEach;
  load_queries(s, queries, kOwn, first);
  load_gradients(s, gradients, kOwn, first);
  __syncthreads();
  Sum log_sum[kEach], delta[kEach], sums[kEach][kColumns];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int q = own + e;
    const bool there = q < s.queries;
    const long long place = s.head * a.query_rows + s.first_query + q;
    log_sum[e] = there ? ((const Sum*)a.log_sums)[place] : 0;
    Sum part = 0;
    for (int d = lane; d < D_HEAD && there; d += kLanes) {
      part += sum_of(((const Number*)a.output)[s.query_at(q) + d]) * gradients[q - first].at[d];
    }
    delta[e] = warp_sum(part);
    if (there && lane == 0) ((Sum*)a.deltas)[place] = delta[e];
    for (int c = 0; c < kColumns; ++c) sums[e][c] = 0;
  }
  for (int k = 0; k < s.keys; k += kLanes) {
    if (a.causal && k - a.prefix > first + kOwn - 1) break;
    __syncthreads();
    load_keys(s, keys, values, kLanes, k);
    __syncthreads();
    kept[warp].draw(s, own, k, lane);
    Sum scores[kEach], to_kept[kEach], to_scores[kEach];
    multiply(scores, keys[lane], queries + warp * kEach);
    multiply(to_kept, values[lane], gradients + warp * kEach);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      to_scores[e] = 0;
      if (s.sees(own + e, k + lane)) {
        to_scores[e] = exp(scores[e] + s.bias(own + e, k + lane) - log_sum[e]) *
                       (to_kept[e] * kept[warp].multiplier(s, e, k, lane) - delta[e]);
      }
    }
    add_rows(sums, to_scores, keys, lane);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (own + e >= s.queries) break;
    write((Number*)a.query_gradient + s.query_at(own + e, a.gradient_stride), sums[e], (Sum)a.scale, lane);
  }
}

/// Computes the gradients of keys and values. Needs the deltas that attention_to_query writes.
KERNEL __launch_bounds__(kWarps* kLanes) attention_to_keys(AttentionArguments a) {
  if ((int)blockIdx.z == a.sequences) {
    write_filling(a.key_gradient, a.gradient_stride, a.key_starts[a.sequences], a.key_rows);
    write_filling(a.value_gradient, a.gradient_stride, a.key_starts[a.sequences], a.key_rows);
    return;
  }
  __shared__ Row keys[kOwn], values[kOwn], queries[kLanes], gradients[kLanes];
  const Sequence s(a);
  const int first = blockIdx.x * kOwn;
  if (first >= s.keys) return;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int own = first + warp * kEach;
  load_keys(s, keys, values, kOwn, first);
  Sum to_key[kEach][kColumns], to_value[kEach][kColumns];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    for (int c = 0; c < kColumns; ++c) to_key[e][c] = to_value[e][c] = 0;
  }
  const unsigned number = s.drawn_number(own);
  for (int begin = 0; begin < s.queries; begin += kLanes) {
    if (a.causal && begin + kLanes - 1 < first - a.prefix) continue;
    __syncthreads();
    load_queries(s, queries, kLanes, begin);
    load_gradients(s, gradients, kLanes, begin);
    __syncthreads();
    const int q = begin + lane;
    const bool there = q < s.queries;
    const long long place = s.head * a.query_rows + s.first_query + q;
    const Sum log_sum = there ? ((const Sum*)a.log_sums)[place] : 0;
    const Sum delta = there ? ((const Sum*)a.deltas)[place] : 0;
    // The four keys' numbers span one or two of Philox's blocks.
    Words drawn = {}, behind = {};
    if (a.dropped != 0) {
      drawn = s.draw(q, number / 8);
      behind = number % 8 + kEach > 8 ? s.draw(q, number / 8 + 1) : drawn;
    }
    Sum scores[kEach], to_kept[kEach], weights[kEach], to_scores[kEach];
    multiply(scores, queries[lane], keys + warp * kEach);
    multiply(to_kept, gradients[lane], values + warp * kEach);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      Sum probability = 0, multiplier = 1;
      if (s.sees(q, own + e)) probability = exp(scores[e] + s.bias(q, own + e) - log_sum);
      if (a.dropped != 0) {
        const unsigned n = number % 8 + e;
        const unsigned bits = sixteen_bits(n < 8 ? drawn.word : behind.word, n % 8);
        multiplier = bits >= a.dropped ? (Sum)a.kept_scale : 0;
      }
      weights[e] = probability * multiplier;
      to_scores[e] = probability * (to_kept[e] * multiplier - delta);
    }
    add_rows(to_value, weights, gradients, lane);
    add_rows(to_key, to_scores, queries, lane);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int k = own + e;
    if (k >= s.keys) break;
    const bool of_prefix = k < a.prefix;
    const long long place = of_prefix ? s.prefix_at(s.number, k) : s.row_at(k, a.gradient_stride);
    write((Number*)(of_prefix ? a.prefix_key_gradient : a.key_gradient) + place, to_key[e], 1, lane);
    write((Number*)(of_prefix ? a.prefix_value_gradient : a.value_gradient) + place, to_value[e], 1,
          lane);
  }
}
