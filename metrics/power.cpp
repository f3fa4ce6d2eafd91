#include "metrics/power.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "metrics/paired_comparison.h"

namespace petlab::metrics {
namespace {

void require_fraction(const char* what, double value) {
  if (!(value > 0 && value < 1)) {
    throw std::invalid_argument(fmt::format("{} is {}, must be between 0 and 1", what, value));
  }
}

// Rounds to two digits: 28258 becomes 28000.
std::int64_t two_digits(std::int64_t count) {
  std::int64_t unit = 1;
  while (count / unit >= 100) unit *= 10;
  return (count + unit / 2) / unit * unit;
}

}  // namespace

double paired_t_power(std::int64_t pairs, double effect, double alpha) {
  require_fraction("alpha", alpha);
  if (pairs < 2) throw std::invalid_argument(fmt::format("{} pairs: at least 2 needed", pairs));
  if (!std::isfinite(effect)) {
    throw std::invalid_argument(fmt::format("the effect is {}, must be finite", effect));
  }
  const double freedom = static_cast<double>(pairs - 1);
  const double center = std::fabs(effect) * std::sqrt(static_cast<double>(pairs));
  const double critical =
      boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), alpha / 2));
  // T = (Z + center) / S, where Z is standard normal and freedom S^2 is chi squared. Integrated
  // over S, because Boost's noncentral t throws for a large noncentrality.
  const boost::math::normal normal;
  const boost::math::chi_squared chi_squared(freedom);
  const auto density = [&](double s) {
    const double found = boost::math::cdf(normal, center - critical * s) +
                         boost::math::cdf(normal, -center - critical * s);
    return found * boost::math::pdf(chi_squared, freedom * s * s) * 2 * freedom * s;
  };
  // S has the mean 1 and a deviation of about 1 / sqrt(2 freedom). Integrated in halves, so that
  // the narrow peak of many pairs is not missed.
  const double width = 12 / std::sqrt(2 * freedom);
  const auto integral = [&](double from, double to) {
    constexpr unsigned kMaxDepth = 10;
    return boost::math::quadrature::gauss_kronrod<double, 31>::integrate(density, from, to,
                                                                         kMaxDepth, 1e-9);
  };
  return std::min(1.0, integral(std::max(0.0, 1 - width), 1) + integral(1, 1 + width));
}

PairsNeeded pairs_needed(double mean_difference, double deviation, double alpha, double power) {
  require_fraction("alpha", alpha);
  require_fraction("the power", power);
  if (!std::isfinite(mean_difference) || !std::isfinite(deviation) || deviation < 0) {
    throw std::invalid_argument(
        fmt::format("the mean difference is {} and the deviation {}; both must be finite, and the "
                    "deviation at least 0",
                    mean_difference, deviation));
  }
  if (mean_difference == 0) return {.answer = PairsNeeded::Answer::never};
  const double effect = std::fabs(mean_difference) / deviation;
  if (!std::isfinite(effect)) return {.answer = PairsNeeded::Answer::unknown};
  const auto enough = [&](std::int64_t pairs) {
    return paired_t_power(pairs, effect, alpha) >= power;
  };
  std::int64_t too_few = 1;
  std::int64_t pairs = 2;
  while (!enough(pairs)) {
    if (pairs == kMostPairs) return {.answer = PairsNeeded::Answer::never};
    too_few = pairs;
    pairs = std::min(2 * pairs, kMostPairs);
  }
  while (pairs - too_few > 1) {
    const std::int64_t middle = std::midpoint(too_few, pairs);
    (enough(middle) ? pairs : too_few) = middle;
  }
  return {.answer = PairsNeeded::Answer::pairs, .pairs = pairs};
}

std::string more_seeds(const PairsNeeded& needed, std::int64_t pairs) {
  switch (needed.answer) {
    case PairsNeeded::Answer::never:
      return "no number of seeds";
    case PairsNeeded::Answer::unknown:
      return "unknown";
    case PairsNeeded::Answer::pairs:
      break;
  }
  const std::int64_t more = two_digits(std::max(needed.pairs, kFewestPairs) - pairs);
  if (more <= 0) return "no more seeds";
  return fmt::format("about {} more seed{}", more, more == 1 ? "" : "s");
}

}  // namespace petlab::metrics
