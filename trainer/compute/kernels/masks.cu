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

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
static_assert(kDigits == kMaskThreads, "a thread sums the counts of a digit");

KERNEL __launch_bounds__(kMaskThreads) masks_selected(MaskArguments a) {
  constexpr int kWarps = kMaskThreads / kLanes;
  __shared__ unsigned counts[kWarps][kDigits];  // by warp, so that fewer threads add to one number
  __shared__ unsigned sums[kDigits];
  __shared__ int digit;
  __shared__ long long rank;
  const int thread = threadIdx.x;
  const Number* scores = (const Number*)a.scores + blockIdx.x * a.width;
  Bits limit = 0, known = 0;
  long long left = a.zeros;  // the rank of the last zero among numbers with the known digits
  for (int shift = (int)sizeof(Bits) * 8 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int warp = 0; warp < kWarps; ++warp) counts[warp][thread] = 0;
    __syncthreads();
    for (long long i = thread; i < a.width; i += kMaskThreads) {
      const Bits bits = magnitude(scores[i]);
      if ((bits & known) == limit) {
        atomicAdd(&counts[thread / kLanes][(bits >> shift) & (kDigits - 1)], 1u);
      }
    }
    __syncthreads();
    unsigned sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += counts[warp][thread];
    sums[thread] = sum;
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
  // The first `left` of the numbers equal to the limit become 0. Each thread has a part of the row.
  const long long part = (a.width + kMaskThreads - 1) / kMaskThreads;
  const long long from = thread * part;
  const long long to = from + part < a.width ? from + part : a.width;
  unsigned equal = 0;
  for (long long i = from; i < to; ++i) equal += magnitude(scores[i]) == limit;
  __syncthreads();
  sums[thread] = equal;
  __syncthreads();
  long long before = 0;
  for (int t = 0; t < thread; ++t) before += sums[t];
  Number* masks = (Number*)a.masks + blockIdx.x * a.width;
  for (long long i = from; i < to; ++i) {
    const Bits bits = magnitude(scores[i]);
    const bool kept = bits > limit || (bits == limit && ++before > left);
    masks[i] = kept ? 1 : 0;
  }
}
