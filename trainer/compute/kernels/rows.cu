// norm((drop(x) + z) + y) of rows, drop(x) + y alone, and their gradients. A warp computes a row; a lane
// visits eight numbers at a time, those of one block of Philox. A lane reads and writes the same
// numbers in each visit, so it need not wait for other lanes.

/// The row of this warp.
struct Row {
  const RowArguments& a;
  long long number;
  int lane;

  __device__ Row(const RowArguments& of)
      : a(of),
        number((long long)blockIdx.x * kRowsABlock + threadIdx.x / kLanes),
        lane(threadIdx.x % kLanes) {}

  __device__ bool there() const { return number < a.rows; }

  /// Calls visit(index, column) for each number of this lane.
  template <typename Visit>
  __device__ void each(const Visit& visit) const {
    for (long long first = lane * 8; first < a.width; first += kLanes * 8) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (first + i < a.width) visit(number * a.width + first + i, first + i);
      }
    }
  }

  /// Calls visit(index, column, multiplier) with dropout's multipliers.
  template <typename Visit>
  __device__ void each_dropped(const Visit& visit) const {
    const RowDropout& d = a.dropout;
    if (d.dropped == 0) {
      each([&](long long at, long long column) { visit(at, column, (Sum)1); });
      return;
    }
    const long long* keys = d.round_keys + (d.trials > 1 ? d.trial[number] : 0);
    for (long long first = lane * 8; first < a.width; first += kLanes * 8) {
      const Words drawn = philox((unsigned)(first / 8), (unsigned)d.position[number],
                                 (unsigned)d.example[number], d.step, (unsigned)keys[0],
                                 (unsigned)keys[d.word_stride]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool kept = sixteen_bits(drawn.word, i) >= d.dropped;
        if (first + i < a.width) {
          visit(number * a.width + first + i, first + i, kept ? (Sum)d.kept_scale : (Sum)0);
        }
      }
    }
  }
};

__device__ inline Sum read(const void* from, long long at) {
  return sum_of(((const Number*)from)[at]);
}
__device__ inline void write(void* to, long long at, Sum value) {
  ((Number*)to)[at] = number_of(value);
}

/// output = drop(x) + y, or drop(x), which is also the gradient of drop.
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_dropped(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
  row.each_dropped([&](long long at, long long, Sum multiplier) {
    const Sum dropped = read(a.x, at) * multiplier;
    write(a.output, at, a.y == nullptr ? dropped : dropped + read(a.y, at));
  });
}

/// output = norm((drop(x) + z) + y)
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_normed(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
  void* const kept = a.normalised == nullptr ? a.output : a.normalised;
  Sum sum = 0;
  row.each_dropped([&](long long at, long long, Sum multiplier) {
    Number added = number_of(read(a.x, at) * multiplier);
    if (a.dropped != nullptr) ((Number*)a.dropped)[at] = added;
    if (a.z != nullptr) added = number_of(sum_of(added) + read(a.z, at));
    write(kept, at, sum_of(added) + read(a.y, at));
    sum += read(kept, at);
  });
  const Sum mean = warp_sum(sum) / a.width;
  Sum squares = 0;
  row.each([&](long long at, long long) {
    const Sum centred = read(kept, at) - mean;
    squares += centred * centred;
  });
  const Sum inverse = 1 / sqrt(warp_sum(squares) / a.width + (Sum)a.eps);
  row.each([&](long long at, long long column) {
    const Sum normalised = (read(kept, at) - mean) * inverse;
    if (a.normalised != nullptr) write(a.normalised, at, normalised);
    write(a.output, at, normalised * read(a.weight, column) + read(a.bias, column));
  });
  if (a.normalised != nullptr && row.lane == 0) ((Sum*)a.inverse)[row.number] = inverse;
}

/// The gradients of x, y and z.
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_normed_backward(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
  const auto to_normalised = [&](long long at, long long column) {
    return read(a.output_gradient, at) * read(a.weight, column);
  };
  Sum sum = 0, product = 0, inverse = 0;
  if (a.output_gradient != nullptr) {
    row.each([&](long long at, long long column) {
      const Sum gradient = to_normalised(at, column);
      sum += gradient;
      product += gradient * read(a.normalised, at);
    });
    sum = warp_sum(sum) / a.width;
    product = warp_sum(product) / a.width;
    inverse = ((const Sum*)a.inverse)[row.number];
  }
  row.each_dropped([&](long long at, long long column, Sum multiplier) {
    Sum to_sum = 0;
    if (a.output_gradient != nullptr) {
      to_sum = inverse * (to_normalised(at, column) - sum - read(a.normalised, at) * product);
    }
    write(a.y_gradient, at, to_sum);
    if (a.x_gradient == nullptr) return;
    if (a.dropped_gradient != nullptr) to_sum += read(a.dropped_gradient, at);
    write(a.x_gradient, at, to_sum * multiplier);
  });
}
