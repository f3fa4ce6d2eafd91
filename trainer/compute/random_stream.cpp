#include "trainer/compute/random_stream.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>

#include "metrics/storage.h"
#include "trainer/compute/clones.h"

namespace petlab::trainer {
namespace {

constexpr std::uint32_t kMultiplier0 = kPhiloxMultipliers[0];
constexpr std::uint32_t kMultiplier1 = kPhiloxMultipliers[1];
constexpr std::uint32_t kWeyl0 = kPhiloxWeyl[0];
constexpr std::uint32_t kWeyl1 = kPhiloxWeyl[1];

PETLAB_INLINE std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
PETLAB_INLINE std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

std::array<std::uint32_t, 2> place_key(const StreamPlace& place) {
  return stream_key(place.seed, place.purpose, place.layer);
}

std::array<std::uint32_t, 4> place_counter(const StreamPlace& place) {
  assert(high(place.step) == 0 && high(place.layer) == 0 && high(place.example) == 0 &&
         high(place.position) == 0);
  return {0, low(place.position), low(place.example), low(place.step)};
}

// The number of blocks computed in parallel. Loops over 16 would be unrolled instead of vectorised.
constexpr std::size_t kLanes = 32;
constexpr std::size_t kPerBlock = 8;  // 16-bit numbers
using Lanes = std::array<std::uint32_t, kLanes>;

/// Computes the blocks `first` .. `first + kLanes - 1` of a place, in order.
PETLAB_INLINE void philox_lanes(const std::array<std::uint32_t, 4>& counter,
                                std::array<std::uint32_t, 2> key, std::uint32_t first,
                                std::array<std::uint32_t, 4 * kLanes>& blocks) {
  std::array<Lanes, 4> out;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    out[0][lane] = first + static_cast<std::uint32_t>(lane);
    out[1][lane] = counter[1];
    out[2][lane] = counter[2];
    out[3][lane] = counter[3];
  }
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t product0 = std::uint64_t{kMultiplier0} * out[0][lane];
      const std::uint64_t product1 = std::uint64_t{kMultiplier1} * out[2][lane];
      out[0][lane] = high(product1) ^ out[1][lane] ^ key[0];
      out[1][lane] = low(product1);
      out[2][lane] = high(product0) ^ out[3][lane] ^ key[1];
      out[3][lane] = low(product0);
    }
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t word = 0; word < 4; ++word) blocks[4 * lane + word] = out[word][lane];
  }
}

/// Writes n multipliers: `dropped` of the 65536 16-bit values mean 0, the others `scale`.
PETLAB_CLONES void fill_multipliers(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key, std::uint32_t dropped,
                                    float scale, float* multiplier, std::size_t n) {
  std::array<std::uint32_t, 4 * kLanes> blocks;
  std::array<float, kLanes * kPerBlock> chosen;
  for (std::size_t done = 0; done < n; done += chosen.size()) {
    philox_lanes(counter, key, static_cast<std::uint32_t>(done / kPerBlock), blocks);
    for (std::size_t word = 0; word < blocks.size(); ++word) {
      chosen[2 * word] = (blocks[word] & 0xffffU) < dropped ? 0.0F : scale;
      chosen[2 * word + 1] = (blocks[word] >> 16U) < dropped ? 0.0F : scale;
    }
    std::copy_n(chosen.begin(), std::min(chosen.size(), n - done), multiplier + done);
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, Purpose purpose, std::uint64_t layer) {
  // Seed, purpose and layer are hashed by one Philox block, so that the rest (step, example,
  // position, block) fits into the counter.
  const auto block =
      philox({static_cast<std::uint32_t>(purpose), low(layer), 0x7065746c, 0x61620001},
             {low(seed), high(seed)});
  return {block[0], block[1]};
}

std::uint32_t dropped_of_65536(double p) {
  // At least one value must be kept, or there would be nothing to scale.
  return static_cast<std::uint32_t>(std::min(std::lround(p * 65536), 65535L));
}

RandomStream::RandomStream(const StreamPlace& place)
    : key_(place_key(place)), counter_(place_counter(place)) {}

std::uint32_t RandomStream::next_u32() {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    // A stream has 2^34 numbers; no use comes near the end.
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  assert(bound > 0);
  // Rejects draws outside the largest multiple of the bound, so that all remainders are equally
  // likely.
  const std::uint64_t rest = (0 - bound) % bound;
  while (true) {
    const std::uint64_t low_half = next_u32();
    const std::uint64_t number = (std::uint64_t{next_u32()} << 32) | low_half;
    if (number >= rest) return number % bound;
  }
}

float RandomStream::uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }

double RandomStream::normal() {
  // Shifts the first draw to (0, 1], where the logarithm is finite.
  const double radius = (static_cast<double>(next_u32()) + 1) * 0x1p-32;
  const double angle = static_cast<double>(next_u32()) * 0x1p-32;
  return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
}

float dropout_scale(double p) {
  return static_cast<float>(65536.0 / (65536.0 - dropped_of_65536(p)));
}

void fill_dropout(const StreamPlace& place, double p, std::span<float> multiplier) {
  fill_multipliers(place_counter(place), place_key(place), dropped_of_65536(p), dropout_scale(p),
                   multiplier.data(), multiplier.size());
}

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::uint64_t task, std::uint64_t epoch,
                                      std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  RandomStream stream({.seed = seed, .purpose = Purpose::shuffle, .step = epoch, .layer = task});
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[stream.below(left)]);
  }
  return order;
}

void fill_uniform(std::uint64_t seed, std::uint64_t parameter, double bound, std::span<float> out) {
  RandomStream stream({.seed = seed, .purpose = Purpose::initialisation, .layer = parameter});
  for (float& value : out) {
    value = static_cast<float>(bound * (2 * static_cast<double>(stream.uniform()) - 1));
  }
}

void fill_normal(std::uint64_t seed, std::uint64_t parameter, double std_dev,
                 std::span<float> out) {
  RandomStream stream({.seed = seed, .purpose = Purpose::initialisation, .layer = parameter});
  for (float& value : out) value = static_cast<float>(std_dev * stream.normal());
}

void fill_random_mask(Purpose purpose, std::uint64_t seed, std::uint64_t parameter,
                      std::uint64_t of, double sparsity_ratio, std::span<std::uint8_t> mask) {
  const auto n = static_cast<std::int64_t>(mask.size());
  RandomStream stream({.seed = seed, .purpose = purpose, .layer = of, .example = parameter});
  // Selection sampling: element i is a zero with probability (zeros left) / (elements left).
  std::int64_t zeros_left = metrics::zeros_in_mask(sparsity_ratio, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const bool zero =
        static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(n - i))) < zeros_left;
    mask[static_cast<std::size_t>(i)] = zero ? 0 : 1;
    if (zero) --zeros_left;
  }
}

}  // namespace petlab::trainer
