#pragma once

#include <cstdint>
#include <string>

namespace petlab::metrics {

/// The probability that the two-sided paired t test at level `alpha` finds a true difference of
/// `effect` standard deviations of the differences (d_z) with this many pairs (Cohen 1988):
/// P(|T| > t(1 - alpha/2, pairs - 1)), T noncentral t with noncentrality effect sqrt(pairs).
/// Throws std::invalid_argument for fewer than two pairs, an effect that is not finite, and an
/// alpha outside (0, 1).
double paired_t_power(std::int64_t pairs, double effect, double alpha = 0.05);

/// The number of pairs needed to detect a difference.
struct PairsNeeded {
  enum class Answer {
    pairs,    ///< `pairs` pairs
    never,    ///< there is no difference, or it takes more than kMostPairs
    unknown,  ///< all observed differences are equal, so their spread is unknown
  };
  Answer answer = Answer::never;
  std::int64_t pairs = 0;  ///< set for Answer::pairs
};
inline constexpr std::int64_t kMostPairs = 1'000'000;

/// The smallest number of pairs, at least 2, with which the paired t test detects the difference
/// with this power, if the true mean and standard deviation of the differences are the observed
/// ones. Throws std::invalid_argument for a value that is not finite, a negative deviation, and an
/// alpha or power outside (0, 1).
PairsNeeded pairs_needed(double mean_difference, double deviation, double alpha = 0.05,
                         double power = 0.8);

/// The answer as text if `pairs` seeds exist: "about 4 more seeds", "no more seeds", "no number of
/// seeds", "unknown". At least kFewestPairs seeds are always needed. Counts above 100 are rounded
/// to two digits, because the observed effect is only an estimate.
std::string more_seeds(const PairsNeeded& needed, std::int64_t pairs);

}  // namespace petlab::metrics
