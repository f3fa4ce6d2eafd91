#include "metrics/correlation.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "metrics/ranker.h"

namespace petlab::metrics {
namespace {

// Sums of products of 64-bit integers are exact, so the order of summation does not matter.
__extension__ using SignedWide = __int128;

void require_pairs(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) {
    throw std::invalid_argument(
        fmt::format("{} and {} numbers: the counts must be equal", x.size(), y.size()));
  }
  if (x.empty()) throw std::invalid_argument("no pairs of numbers: at least one is needed");
  // Ranks have 32 bits.
  if (x.size() >= (std::size_t{1} << 31)) {
    throw std::invalid_argument(fmt::format("{} pairs: at most 2^31 are allowed", x.size()));
  }
}

void require_finite(std::span<const double> values, const char* side) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw std::invalid_argument(
          fmt::format("{} number {} of element {} is not finite", side, values[i], i));
    }
  }
}

// A column as integers: round((x - shift) * scale). The scale is a power of two that brings the
// largest to about 2^bits; the shift is near the mean.
class Fixed {
 public:
  Fixed(std::span<const double> values, int bits) : values_(values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    constant_ = *low == *high;
    if (constant_) return;
    // The range of two doubles may need the exponents of long double.
    const long double range = static_cast<long double>(*high) - static_cast<long double>(*low);
    int exponent = 0;
    std::frexp(range, &exponent);
    const int power = bits - exponent;
    const int first = std::min(power, 1000);
    scale_ = std::ldexp(1.0, first);
    second_scale_ = std::ldexp(1.0, power - first);
    const long double middle =
        (static_cast<long double>(*high) + static_cast<long double>(*low)) / 2;
    shift_ = static_cast<double>(std::ldexp(middle, power));
    SignedWide sum = 0;
    for (const double value : values_) sum += scaled(value);
    mean_ = static_cast<std::int64_t>(sum / static_cast<SignedWide>(values_.size()));
    rest_ = static_cast<long double>(sum - static_cast<SignedWide>(mean_) *
                                               static_cast<SignedWide>(values_.size()));
  }

  bool constant() const { return constant_; }
  std::int64_t at(std::size_t i) const { return scaled(values_[i]) - mean_; }
  // The sum of at(i) over all i, smaller than n.
  long double rest() const { return rest_; }

 private:
  std::int64_t scaled(double value) const {
    return static_cast<std::int64_t>(value * scale_ * second_scale_ - shift_);
  }

  std::span<const double> values_;
  bool constant_ = false;
  double scale_ = 1;
  double second_scale_ = 1;
  double shift_ = 0;
  std::int64_t mean_ = 0;
  long double rest_ = 0;
};

double clamped(long double correlation) {
  return static_cast<double>(std::clamp(correlation, -1.0L, 1.0L));
}

}  // namespace

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  require_pairs(x, y);
  require_finite(x, "first");
  require_finite(y, "second");
  if (x.size() == 1) return std::nullopt;
  // n products of two numbers below 2^(bits + 1) must fit in 127 bits.
  const int bits = std::min(53, (126 - static_cast<int>(std::bit_width(x.size()))) / 2 - 1);
  const Fixed a(x, bits);
  const Fixed b(y, bits);
  if (a.constant() || b.constant()) return std::nullopt;
  SignedWide aa = 0;
  SignedWide bb = 0;
  SignedWide ab = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t u = a.at(i);
    const std::int64_t v = b.at(i);
    aa += static_cast<SignedWide>(u) * u;
    bb += static_cast<SignedWide>(v) * v;
    ab += static_cast<SignedWide>(u) * v;
  }
  const auto n = static_cast<long double>(x.size());
  const long double var_a = static_cast<long double>(aa) - a.rest() * a.rest() / n;
  const long double var_b = static_cast<long double>(bb) - b.rest() * b.rest() / n;
  const long double cov = static_cast<long double>(ab) - a.rest() * b.rest() / n;
  return clamped(cov / (std::sqrt(var_a) * std::sqrt(var_b)));
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  require_pairs(x, y);
  require_finite(x, "first");
  require_finite(y, "second");
  if (x.size() == 1) return std::nullopt;
  const auto n = static_cast<std::int64_t>(x.size());
  // Doubled ranks have the mean n + 1 with any ties, so all sums are of integers.
  const auto centred = [n](std::uint32_t twice_rank) {
    return static_cast<std::int64_t>(twice_rank) - (n + 1);
  };
  Ranker ranker;
  const std::vector<std::uint32_t> x_ranks = ranker.twice_ranks(x);
  const std::vector<std::uint32_t> y_ranks = ranker.twice_ranks(y);
  SignedWide xx = 0;
  SignedWide yy = 0;
  SignedWide xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t u = centred(x_ranks[i]);
    const std::int64_t v = centred(y_ranks[i]);
    xx += static_cast<SignedWide>(u) * u;
    yy += static_cast<SignedWide>(v) * v;
    xy += static_cast<SignedWide>(u) * v;
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return clamped(static_cast<long double>(xy) / (std::sqrt(static_cast<long double>(xx)) *
                                                 std::sqrt(static_cast<long double>(yy))));
}

std::vector<double> average_ranks(std::span<const double> values) {
  require_finite(values, "the");
  const std::vector<std::uint32_t> twice = Ranker().twice_ranks(values);
  std::vector<double> ranks(twice.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<double>(twice[i]) / 2;
  return ranks;
}

}  // namespace petlab::metrics
