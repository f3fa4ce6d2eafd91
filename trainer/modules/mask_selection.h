#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace petlab::trainer {

/// Computes the mask of scores (reference/method.md, "Sharing and masking"): the
/// metrics::zeros_in_mask(k, n) smallest |score| become 0, all others 1. Of equal |score|, those
/// with lower row-major indices become 0 first. O(n). NaN counts as larger than any number. `mask`
/// has as many elements as `scores`.
void select_mask(std::span<const float> scores, double sparsity_ratio, std::span<float> mask);
void select_mask(std::span<const float> scores, double sparsity_ratio,
                 std::span<std::uint8_t> mask);
void select_mask(std::span<const double> scores, double sparsity_ratio, std::span<double> mask);
void select_mask(std::span<const double> scores, double sparsity_ratio,
                 std::span<std::uint8_t> mask);

/// Packs one bit per element (nonzero is 1), least significant first. Unused bits of the last byte
/// are 0.
std::vector<std::uint8_t> pack_bits(std::span<const std::uint8_t> mask);
/// The inverse: returns `n` elements of 0 and 1 from at least (n + 7) / 8 bytes.
std::vector<std::uint8_t> unpack_bits(std::span<const std::uint8_t> bits, std::int64_t n);

}  // namespace petlab::trainer
