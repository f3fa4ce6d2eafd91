#include "trainer/modules/mask_selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>

#include "metrics/storage.h"

namespace petlab::trainer {
namespace {

/// |score| as an unsigned integer. Without their sign, IEEE numbers have the same order as their
/// bits; NaN is above infinity, and -0.0 equals 0.0.
std::uint32_t magnitude(float score) { return std::bit_cast<std::uint32_t>(score) & 0x7fffffffu; }
std::uint64_t magnitude(double score) {
  return std::bit_cast<std::uint64_t>(score) & 0x7fffffffffffffffu;
}

// With 11 bits per digit, the counters fit the first-level cache, and 32 bits take three passes.
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

/// The end of the zeros: all magnitudes below `limit` become 0, and so do `ties` of the `equal`
/// ones that are exactly `limit`.
template <typename Bits>
struct Threshold {
  Bits limit = 0;
  std::int64_t ties = 0;
  std::int64_t equal = 0;
};

/// Radix selection: each pass determines the next digit of the `zeros`-th smallest magnitude (from
/// 1) and keeps only the candidates with that digit.
template <typename Score, typename Bits = decltype(magnitude(Score{}))>
Threshold<Bits> find_threshold(std::span<const Score> scores, std::int64_t zeros) {
  Threshold<Bits> result;
  result.ties = zeros;
  int above = sizeof(Bits) * 8;
  std::unique_ptr<Bits[]> candidates;
  std::size_t count = scores.size();
  while (above > 0) {
    const int shift = std::max(0, above - kDigitBits);
    const Bits digit_mask = (Bits{1} << (above - shift)) - 1;
    std::array<std::uint32_t, kDigits> counts{};
    if (candidates == nullptr) {
      for (const Score score : scores) ++counts[(magnitude(score) >> shift) & digit_mask];
    } else {
      for (std::size_t i = 0; i < count; ++i) ++counts[(candidates[i] >> shift) & digit_mask];
    }
    std::size_t digit = 0;
    while (result.ties > static_cast<std::int64_t>(counts[digit])) result.ties -= counts[digit++];
    result.equal = counts[digit];
    result.limit = static_cast<Bits>((result.limit << (above - shift)) | digit);
    above = shift;
    // Writing every candidate, but advancing only after a match, avoids unpredictable branches. The
    // buffer has one extra place for writes after the last match.
    std::size_t kept = 0;
    if (candidates == nullptr) {
      candidates.reset(new Bits[counts[digit] + 1]);
      for (const Score score : scores) {
        const Bits bits = magnitude(score);
        candidates[kept] = bits;
        kept += (bits >> above) == result.limit ? 1 : 0;
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        candidates[kept] = candidates[i];
        kept += (candidates[i] >> above) == result.limit ? 1 : 0;
      }
    }
    count = kept;
  }
  return result;
}

template <typename Score, typename Element>
void select(std::span<const Score> scores, double sparsity_ratio, std::span<Element> mask) {
  assert(scores.size() == mask.size());
  const auto n = static_cast<std::int64_t>(scores.size());
  const std::int64_t zeros = metrics::zeros_in_mask(sparsity_ratio, n);
  if (zeros <= 0) {
    std::fill(mask.begin(), mask.end(), Element{1});
    return;
  }
  const auto [limit, ties, equal] = find_threshold(scores, zeros);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    mask[i] = magnitude(scores[i]) > limit ? Element{1} : Element{0};
  }
  // Most scores are distinct, so usually all magnitudes at the threshold become 0.
  if (equal == ties) return;
  std::int64_t left = ties;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (magnitude(scores[i]) == limit && --left < 0) mask[i] = 1;
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
