#include "metrics/numpy_random.h"

#include <array>
#include <cstddef>

namespace petlab::metrics {
namespace {

// numpy's SeedSequence (after M. E. O'Neill's seed_seq_fe): hashes entropy into a pool of four
// words, and any number of words out of the pool.
constexpr std::size_t kPool = 4;

std::uint32_t hash_in(std::uint32_t value, std::uint32_t& constant) {
  value ^= constant;
  constant *= 0x931E8875U;
  value *= constant;
  return value ^ value >> 16;
}

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t mixed = 0xCA01F9DDU * x - 0x4973F715U * y;
  return mixed ^ mixed >> 16;
}

std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  // A seed has at most two 32-bit words, which fit the pool.
  const std::array<std::uint32_t, kPool> entropy = {static_cast<std::uint32_t>(seed),
                                                    static_cast<std::uint32_t>(seed >> 32), 0, 0};
  std::array<std::uint32_t, kPool> pool;
  std::uint32_t constant = 0x43B0D7E5U;
  for (std::size_t i = 0; i < kPool; ++i) pool[i] = hash_in(entropy[i], constant);
  for (std::size_t from = 0; from < kPool; ++from) {
    for (std::size_t to = 0; to < kPool; ++to) {
      if (from != to) pool[to] = mix(pool[to], hash_in(pool[from], constant));
    }
  }
  std::array<std::uint64_t, 4> words{};
  constant = 0x8B51F9DDU;
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint32_t value = pool[i % kPool] ^ constant;
    constant *= 0x58F38DEDU;
    value *= constant;
    value ^= value >> 16;
    words[i / 2] |= static_cast<std::uint64_t>(value) << (32 * (i % 2));
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = seed_words(seed);
  increment_ = (static_cast<Wide>(words[2]) << 64 | words[3]) << 1 | 1;
  step();
  state_ += static_cast<Wide>(words[0]) << 64 | words[1];
  step();
}

void NumpyRandom::step() {
  constexpr Wide kMultiplier =
      static_cast<Wide>(0x2360ED051FC65DA4ULL) << 64 | 0x4385DF649FCCF645ULL;
  state_ = state_ * kMultiplier + increment_;
}

std::uint64_t NumpyRandom::next64() {
  step();
  const std::uint64_t value =
      static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  const auto rotation = static_cast<unsigned>(state_ >> 122);
  return value >> rotation | value << ((64 - rotation) % 64);
}

std::uint32_t NumpyRandom::next32() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const std::uint64_t value = next64();
  spare_ = static_cast<std::uint32_t>(value >> 32);
  has_spare_ = true;
  return static_cast<std::uint32_t>(value);
}

// Lemire 2019, "Fast random integer generation in an interval".
std::uint32_t NumpyRandom::below(std::uint64_t bound) {
  if (bound == 1) return 0;
  if (bound == std::uint64_t{1} << 32) return next32();
  const auto range = static_cast<std::uint32_t>(bound);
  std::uint64_t product = static_cast<std::uint64_t>(next32()) * range;
  if (static_cast<std::uint32_t>(product) < range) {
    const std::uint32_t threshold = (0U - range) % range;
    while (static_cast<std::uint32_t>(product) < threshold) {
      product = static_cast<std::uint64_t>(next32()) * range;
    }
  }
  return static_cast<std::uint32_t>(product >> 32);
}

bool NumpyRandom::next_bool() {
  if (bits_left_ == 0) {
    bits_ = next32();
    bits_left_ = 32;
  }
  const bool bit = (bits_ & 1) != 0;
  bits_ >>= 1;
  --bits_left_;
  return bit;
}

}  // namespace petlab::metrics
