// Selects masks by magnitude. A block selects a row: it finds the magnitude of the last zero digit by
// digit, from the highest, and counts equal ones.

#if defined(NUMBER_DOUBLE)
typedef unsigned long long Bits;
__device__ inline Bits magnitude(Number number) {
  return (Bits)__double_as_longlong(number) & 0x7FFFFFFFFFFFFFFFull;
}
#elif defined(NUMBER_FLOAT)
typedef unsigned Bits;
__device__ inline Bits magnitude(Number number) { return __float_as_uint(number) & 0x7FFFFFFFu; }
#endif

constexpr int kWarps = kMaskThreads / kLanes;
constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

KERNEL __launch_bounds__(kMaskThreads) masks_selected(MaskArguments a) {
  __shared__ unsigned counts[kWarps][kDigits];  // by warp, so that fewer threads add to one number
  __shared__ unsigned sums[kDigits];
  __shared__ int digit;
  __shared__ long long rank;
  const int thread = threadIdx.x, warp = thread / kLanes, lane = thread % kLanes;
  const Number* scores = (const Number*)a.scores + blockIdx.x * a.width;
  Bits limit = 0, known = 0;
  long long left = a.zeros;  // the rank of the last zero among numbers with the known digits
  for (int shift = (int)sizeof(Bits) * 8 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int i = thread; i < kWarps * kDigits; i += kMaskThreads) counts[i / kDigits][i % kDigits] = 0;
    __syncthreads();
#pragma unroll 4
    for (long long i = thread; i < a.width; i += kMaskThreads) {
      const Bits bits = magnitude(scores[i]);
      if ((bits & known) == limit) atomicAdd(&counts[warp][(bits >> shift) & (kDigits - 1)], 1u);
    }
    __syncthreads();
    if (thread < kDigits) {
      unsigned sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += counts[w][thread];
      sums[thread] = sum;
    }
    __syncthreads();
    if (thread == 0) {
      int d = 0;
      while (left > sums[d]) left -= sums[d++];
      digit = d;
      rank = left;
    }
    __syncthreads();
    left = rank;
    limit |= (Bits)digit << shift;
    known |= (Bits)(kDigits - 1) << shift;
  }
  // The first `left` of the numbers equal to the limit become 0. Each warp has a part of the row.
  const long long part = (a.width + kMaskThreads - 1) / kMaskThreads * kLanes;
  const long long from = warp * part;
  const long long to = from + part < a.width ? from + part : a.width;
  const auto equal = [&](long long i) { return i < to && magnitude(scores[i]) == limit; };
  unsigned equals = 0;
#pragma unroll 4
  for (long long i = from; i < to; i += kLanes) {
    equals += __popc(__ballot_sync(kAll, equal(i + lane)));
  }
  if (lane == 0) sums[warp] = equals;
  __syncthreads();
  long long before = 0;
  for (int w = 0; w < warp; ++w) before += sums[w];
  Number* masks = (Number*)a.masks + blockIdx.x * a.width;
  for (long long i = from; i < to; i += kLanes) {
    const unsigned all = __ballot_sync(kAll, equal(i + lane));
    const long long earlier = before + __popc(all & ((1u << lane) - 1));
    before += __popc(all);
    if (i + lane >= to) continue;
    const Bits bits = magnitude(scores[i + lane]);
    masks[i + lane] = bits > limit || (bits == limit && earlier >= left) ? 1 : 0;
  }
}
