#pragma once

#include <cstdint>

namespace petlab::metrics {

/// Reproduces numpy.random.default_rng(seed): PCG64 (XSL-RR 128/64, O'Neill 2014) seeded by
/// SeedSequence, and the two kinds of draws in sacrebleu's tests.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  std::uint64_t next64();
  /// Half of a 64-bit draw, lower half first.
  std::uint32_t next32();
  /// Uniform below `bound`, 1 to 2^32, like rng.integers(bound) and rng.choice(bound).
  std::uint32_t below(std::uint64_t bound);
  /// Like an element of rng.integers(2, dtype=bool) arrays, drawn bit by bit from 32-bit draws.
  bool next_bool();

 private:
  __extension__ using Wide = unsigned __int128;
  void step();

  Wide state_ = 0;
  Wide increment_ = 0;
  std::uint32_t spare_ = 0;
  bool has_spare_ = false;
  std::uint32_t bits_ = 0;
  int bits_left_ = 0;
};

}  // namespace petlab::metrics
