#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "trainer/compute/clones.h"

namespace petlab::trainer {

// Shared by the inner loops, and inlined into functions that are compiled for several instruction
// sets.

inline constexpr std::int64_t kBlock = 16;  // numbers processed together: one vector of floats

/// A vector of kLanes numbers with the alignment of a single one. Clang ignores the alignment of an
/// alias template, but not that of a member.
template <typename T, std::int64_t kLanes>
struct LanesOf {
  typedef T type [[gnu::vector_size(kLanes * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]];
};
template <typename T, std::int64_t kLanes>
using Lanes = typename LanesOf<T, kLanes>::type;
template <typename T>
using Vector = Lanes<T, kBlock>;

/// e^x for x <= 0, accurate to one or two units in the last place: 2^i · e^r with |r| <= ln 2 / 2.
PETLAB_INLINE float exponential(float x) {
  const float limited = std::max(x, -87.0F);
  // Adding 1.5 · 2^23 rounds to an integer without a call and leaves it in the lowest bits. Unlike
  // a cast, reading those bits is defined even for the NaN of a diverging training, where p and the
  // product are NaN too.
  constexpr float kRounder = 12582912.0F;
  const float shifted = limited * 1.44269504088896341F + kRounder;
  const float whole = shifted - kRounder;
  const float r = (limited - whole * 0.693359375F) + whole * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::uint32_t power =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 127U;
  return p * std::bit_cast<float>(power << 23);
}
PETLAB_INLINE double exponential(double x) { return std::exp(x); }

}  // namespace petlab::trainer
