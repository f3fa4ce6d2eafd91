#include "trainer/modules/mask_selection.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>

#include "metrics/storage.h"

namespace petlab::trainer {
namespace {

/// |score| as an unsigned integer: IEEE numbers without their sign order like their bits, NaN above
/// infinity, and -0.0 equals 0.0.
std::uint32_t magnitude(float score) { return std::bit_cast<std::uint32_t>(score) & 0x7fffffffu; }
std::uint64_t magnitude(double score) {
  return std::bit_cast<std::uint64_t>(score) & 0x7fffffffffffffffu;
}

// A digit of 11 bits: the counters fit the first-level cache, and 32 bits take three passes.
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

/// The magnitude of the `zeros`-th smallest score, and how many scores of exactly this magnitude
/// are among the zeros. Radix selection: each pass fixes the next digit of the threshold. `zeros`
/// is at least 1.
template <typename Score, typename Bits = decltype(magnitude(Score{}))>
std::pair<Bits, std::int64_t> threshold(std::span<const Score> scores, std::int64_t zeros) {
  constexpr int kBits = sizeof(Bits) * 8;
  Bits prefix = 0;
  std::int64_t rank = zeros;  // of the threshold among the scores that share the prefix, from 1
  for (int above = kBits; above > 0;) {
    const int shift = above > kDigitBits ? above - kDigitBits : 0;
    const Bits digit_mask = (Bits{1} << (above - shift)) - 1;
    std::array<std::uint32_t, kDigits> counts{};
    if (above == kBits) {
      for (const Score score : scores) ++counts[(magnitude(score) >> shift) & digit_mask];
    } else {
      for (const Score score : scores) {
        const Bits bits = magnitude(score);
        if ((bits >> above) == prefix) ++counts[(bits >> shift) & digit_mask];
      }
    }
    std::size_t digit = 0;
    while (rank > static_cast<std::int64_t>(counts[digit])) rank -= counts[digit++];
    prefix = static_cast<Bits>((prefix << (above - shift)) | digit);
    above = shift;
  }
  return {prefix, rank};
}

template <typename Score, typename Element>
void select(std::span<const Score> scores, double sparsity_ratio, std::span<Element> mask) {
  assert(scores.size() == mask.size());
  const auto n = static_cast<std::int64_t>(scores.size());
  const std::int64_t zeros = metrics::zeros_in_mask(sparsity_ratio, n);
  if (zeros <= 0) {
    for (Element& element : mask) element = 1;
    return;
  }
  const auto [limit, ties] = threshold(scores, zeros);
  std::int64_t ties_left = ties;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto bits = magnitude(scores[i]);
    bool one = bits > limit;
    if (bits == limit && --ties_left < 0) one = true;
    mask[i] = static_cast<Element>(one);
  }
}

}  // namespace

void select_mask(std::span<const float> scores, double sparsity_ratio, std::span<float> mask) {
  select(scores, sparsity_ratio, mask);
}
void select_mask(std::span<const float> scores, double sparsity_ratio,
                 std::span<std::uint8_t> mask) {
  select(scores, sparsity_ratio, mask);
}
void select_mask(std::span<const double> scores, double sparsity_ratio, std::span<double> mask) {
  select(scores, sparsity_ratio, mask);
}
void select_mask(std::span<const double> scores, double sparsity_ratio,
                 std::span<std::uint8_t> mask) {
  select(scores, sparsity_ratio, mask);
}

std::vector<std::uint8_t> pack_bits(std::span<const std::uint8_t> mask) {
  std::vector<std::uint8_t> bits((mask.size() + 7) / 8);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (1u << (i % 8)));
  }
  return bits;
}

std::vector<std::uint8_t> unpack_bits(std::span<const std::uint8_t> bits, std::int64_t n) {
  assert(bits.size() * 8 >= static_cast<std::size_t>(n));
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] = static_cast<std::uint8_t>((bits[i / 8] >> (i % 8)) & 1u);
  }
  return mask;
}

}  // namespace petlab::trainer
