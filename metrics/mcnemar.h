#pragma once

#include <cstdint>

namespace petlab::metrics {

/// McNemar's test of two systems on the same examples (McNemar 1947). Only examples that exactly
/// one system gets right distinguish the systems. If both are equally good, each is right in half
/// of these.
struct McNemarTest {
  std::int64_t only_a = 0;  ///< examples that only system a gets right
  std::int64_t only_b = 0;  ///< examples that only system b gets right
  /// Exact and two-sided: min(1, 2 P(X <= min(only_a, only_b))) with X ~ Bin(only_a + only_b, 1/2).
  /// 1 if there are no such examples, 0 if below the smallest positive double.
  double p = 1;
  /// p without P(X = min(only_a, only_b)): less conservative, and its false positives can exceed
  /// the level slightly (Fagerland, Lydersen and Laake 2013). 1 if both counts are equal.
  double mid_p = 1;
};

/// Throws std::invalid_argument for a negative count.
McNemarTest mcnemar(std::int64_t only_a, std::int64_t only_b);

}  // namespace petlab::metrics
