#pragma once

#include <array>
#include <cstdint>

namespace petlab::metrics {

/// The exact sum of doubles, rounded once at the end, so that neither the order of the terms nor
/// the number of threads changes a digit. Holds up to 2^30 terms between two calls of round() or
/// merge(); terms must be finite.
class ExactSum {
 public:
  void add(double term);
  /// Adds all terms of another sum.
  void merge(const ExactSum& other);
  /// The sum, rounded to the nearest double (ties to even); infinite if it exceeds all doubles.
  double round() const;

 private:
  static constexpr int kDigits = 70;  // 32 bits each; from 2^-1088 up to beyond the largest double
  void carry();

  std::array<std::int64_t, kDigits> digits_{};
  std::int64_t whole_ = 0;    // the sum of the small whole numbers among the terms
  std::int32_t pending_ = 0;  // terms since the last carry
};

}  // namespace petlab::metrics
