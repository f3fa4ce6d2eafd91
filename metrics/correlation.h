#pragma once

#include <optional>
#include <span>
#include <vector>

namespace petlab::metrics {

// Both correlations are undefined (std::nullopt, never 0) for a single pair or a constant side.
// They throw std::invalid_argument for differing lengths, for no pairs, and for a number that is
// not finite (naming its element, from 0). The order of the pairs does not affect any digit.

/// Pearson's correlation of x and y, (n) each.
std::optional<double> pearson(std::span<const double> x, std::span<const double> y);

/// Spearman's correlation: Pearson's of the ranks, ties having their average rank. Exact except for
/// the last rounding.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

/// Ranks from 1, ties with their average rank; 0.0 and -0.0 tie. Numbers must be finite.
std::vector<double> average_ranks(std::span<const double> values);

}  // namespace petlab::metrics
