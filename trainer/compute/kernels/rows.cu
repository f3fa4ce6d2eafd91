// norm((drop(x) + z) + y) of rows, drop(x) + y alone, and their gradients. A warp computes a row and
// holds it in registers: a lane has SIZE times eight numbers next to each other, which one block of
// Philox drops.

struct alignas(16) Eight {
  Number number[8];
};

/// The row of this warp.
struct Row {
  const RowArguments& a;
  long long number;
  int lane;
  bool whole;  // the row consists of whole eights, which are aligned

  __device__ Row(const RowArguments& of)
      : a(of),
        number((long long)blockIdx.x * kRowsABlock + threadIdx.x / kLanes),
        lane(threadIdx.x % kLanes),
        whole(of.width % 8 == 0) {}

  __device__ bool there() const { return number < a.rows; }
  /// The column of the first number of this lane's eight, and how many of them the row has.
  __device__ int first(int eight) const { return (eight * kLanes + lane) * 8; }
  __device__ int count(int eight) const {
    const long long left = a.width - first(eight);
    return left < 0 ? 0 : left < 8 ? (int)left : 8;
  }

  /// Reads an eight of a row, or of a vector (width); zeros after the end.
  __device__ void read(Sum (&to)[8], const void* from, int eight) const {
    read_at(to, from, number * a.width, eight);
  }
  __device__ void read_vector(Sum (&to)[8], const void* from, int eight) const {
    read_at(to, from, 0, eight);
  }
  __device__ void write(void* to, const Sum (&numbers)[8], int eight) const {
    Number* const at = (Number*)to + number * a.width + first(eight);
    const int n = count(eight);
    if (whole && n == 8) {
      Eight all;
#pragma unroll
      for (int i = 0; i < 8; ++i) all.number[i] = number_of(numbers[i]);
      *(Eight*)at = all;
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < n) at[i] = number_of(numbers[i]);
    }
  }
  /// Multiplies an eight by dropout's multipliers.
  __device__ void drop(Sum (&numbers)[8], int eight) const {
    const RowDropout& d = a.dropout;
    if (d.dropped == 0 || count(eight) == 0) return;
    const long long* keys = d.round_keys + (d.trials > 1 ? d.trial[number] : 0);
    const Words drawn =
        philox((unsigned)first(eight) / 8, (unsigned)d.position[number],
               (unsigned)d.example[number], d.step, (unsigned)keys[0], (unsigned)keys[d.word_stride]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      numbers[i] *= sixteen_bits(drawn.word, i) >= d.dropped ? (Sum)d.kept_scale : (Sum)0;
    }
  }

 private:
  __device__ void read_at(Sum (&to)[8], const void* from, long long row, int eight) const {
    const Number* const at = (const Number*)from + row + first(eight);
    const int n = count(eight);
    if (whole && n == 8) {
      const Eight all = *(const Eight*)at;
#pragma unroll
      for (int i = 0; i < 8; ++i) to[i] = sum_of(all.number[i]);
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = i < n ? sum_of(at[i]) : 0;
  }
};

/// output = drop(x) + y, or drop(x), which is also the gradient of drop.
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_dropped(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
#pragma unroll
  for (int e = 0; e < SIZE; ++e) {
    Sum x[8], y[8];
    row.read(x, a.x, e);
    row.drop(x, e);
    if (a.y != nullptr) {
      row.read(y, a.y, e);
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] += y[i];
    }
    row.write(a.output, x, e);
  }
}

/// output = norm((drop(x) + z) + y)
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_normed(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
  Sum sums[SIZE][8];
  Sum sum = 0;
#pragma unroll
  for (int e = 0; e < SIZE; ++e) {
    Sum y[8], z[8];
    row.read(sums[e], a.x, e);
    row.read(y, a.y, e);
    row.drop(sums[e], e);
    if (a.dropped != nullptr) row.write(a.dropped, sums[e], e);
    if (a.z != nullptr) row.read(z, a.z, e);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      Sum& of = sums[e][i];
      of = rounded(of);
      if (a.z != nullptr) of = rounded(of + z[i]);
      of = rounded(of + y[i]);
      sum += of;
    }
  }
  const Sum mean = warp_sum(sum) / a.width;
  Sum squares = 0;
#pragma unroll
  for (int e = 0; e < SIZE; ++e) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sums[e][i] -= mean;
      if (i < row.count(e)) squares += sums[e][i] * sums[e][i];
    }
  }
  const Sum inverse = 1 / sqrt(warp_sum(squares) / a.width + (Sum)a.eps);
#pragma unroll
  for (int e = 0; e < SIZE; ++e) {
    Sum weight[8], bias[8];
    row.read_vector(weight, a.weight, e);
    row.read_vector(bias, a.bias, e);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[e][i] *= inverse;
    if (a.normalised != nullptr) row.write(a.normalised, sums[e], e);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[e][i] = sums[e][i] * weight[i] + bias[i];
    row.write(a.output, sums[e], e);
  }
  if (a.normalised != nullptr && row.lane == 0) ((Sum*)a.inverse)[row.number] = inverse;
}

/// The gradients of x, y and z.
KERNEL __launch_bounds__(kRowsABlock* kLanes) rows_normed_backward(RowArguments a) {
  const Row row(a);
  if (!row.there()) return;
  const bool normed = a.output_gradient != nullptr;
  Sum gradients[SIZE][8], normalised[SIZE][8];
  Sum sum = 0, product = 0, inverse = 0;
  if (normed) {
    inverse = ((const Sum*)a.inverse)[row.number];
#pragma unroll
    for (int e = 0; e < SIZE; ++e) {
      Sum weight[8];
      row.read(gradients[e], a.output_gradient, e);
      row.read(normalised[e], a.normalised, e);
      row.read_vector(weight, a.weight, e);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        gradients[e][i] *= weight[i];
        sum += gradients[e][i];
        product += gradients[e][i] * normalised[e][i];
      }
    }
    sum = warp_sum(sum) / a.width;
    product = warp_sum(product) / a.width;
  }
#pragma unroll
  for (int e = 0; e < SIZE; ++e) {
    Sum to_sum[8], to_dropped[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to_sum[i] = normed ? inverse * (gradients[e][i] - sum - normalised[e][i] * product) : 0;
    }
    row.write(a.y_gradient, to_sum, e);
    if (a.x_gradient == nullptr) continue;
    if (a.dropped_gradient != nullptr) {
      row.read(to_dropped, a.dropped_gradient, e);
#pragma unroll
      for (int i = 0; i < 8; ++i) to_sum[i] += to_dropped[i];
    }
    row.drop(to_sum, e);
    row.write(a.x_gradient, to_sum, e);
  }
}
