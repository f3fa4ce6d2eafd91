// Shared by the kernels: the types of stored numbers (Number) and of sums (Sum), warps, and Philox.
// The options define NUMBER_FLOAT, NUMBER_DOUBLE or NUMBER_BFLOAT16, and SIZE.

#ifndef KERNEL  // tests on the host define their own
#define KERNEL extern "C" __global__ void
#endif

#if defined(NUMBER_BFLOAT16)
struct Number {
  unsigned short bits;
};
typedef float Sum;
__device__ inline Sum sum_of(Number number) { return __uint_as_float((unsigned)number.bits << 16); }
__device__ inline Number number_of(Sum sum) {
  const unsigned bits = __float_as_uint(sum);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FC0};  // NaN
  return {(unsigned short)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}
#elif defined(NUMBER_DOUBLE)
typedef double Number;
typedef double Sum;
__device__ inline Sum sum_of(Number number) { return number; }
__device__ inline Number number_of(Sum sum) { return sum; }
#else
typedef float Number;
typedef float Sum;
__device__ inline Sum sum_of(Number number) { return number; }
__device__ inline Number number_of(Sum sum) { return sum; }
#endif

__device__ inline Sum rounded(Sum sum) { return sum_of(number_of(sum)); }

constexpr int kLanes = 32;  // of a warp
constexpr unsigned kAll = 0xFFFFFFFFu;

__device__ inline Sum warp_sum(Sum of) {
#pragma unroll
  for (int apart = kLanes / 2; apart > 0; apart /= 2) of += __shfl_xor_sync(kAll, of, apart);
  return of;
}

struct Words {
  unsigned word[4];
};

/// Philox4x32-10 (random_stream.h).
__device__ inline Words philox(unsigned block, unsigned position, unsigned example, unsigned step,
                               unsigned key0, unsigned key1) {
  Words counter = {{block, position, example, step}};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long product0 = (unsigned long long)counter.word[0] * 0xD2511F53u;
    const unsigned long long product1 = (unsigned long long)counter.word[2] * 0xCD9E8D57u;
    counter = {{(unsigned)(product1 >> 32) ^ counter.word[1] ^ key0, (unsigned)product1,
                (unsigned)(product0 >> 32) ^ counter.word[3] ^ key1, (unsigned)product0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The i-th of the eight 16-bit numbers of a block.
__device__ inline unsigned sixteen_bits(const unsigned* words, unsigned i) {
  return (words[i >> 1] >> ((i & 1u) * 16u)) & 0xFFFFu;
}
