#include "metrics/exact_sum.h"

#include <cmath>
#include <cstring>

namespace petlab::metrics {
namespace {

constexpr std::int32_t kCarryEvery = 1 << 29;
constexpr int kLowest = 1088;  // digit d stands for 2^(32 d - kLowest)

}  // namespace

// Terms add up to 21 + 32 bits to three adjacent 64-bit digits, so 2^29 of them fit.
void ExactSum::add(double term) {
  // Most terms are counts.
  if (std::abs(term) < 4294967296.0) {
    const auto whole = static_cast<std::int64_t>(term);
    if (static_cast<double>(whole) == term) {
      whole_ += whole;
      if (++pending_ == kCarryEvery) carry();
      return;
    }
  }
  std::uint64_t bits;
  std::memcpy(&bits, &term, sizeof(bits));
  const int biased = static_cast<int>((bits >> 52) & 0x7FF);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (biased != 0) mantissa |= std::uint64_t{1} << 52;
  const int position = (biased == 0 ? 1 : biased) - 1075 + kLowest;  // of the mantissa's last bit
  const int shift = position % 32;
  const std::uint64_t low = (mantissa & 0xFFFFFFFF) << shift;
  const std::uint64_t high = (mantissa >> 32) << shift;
  const std::int64_t parts[3] = {static_cast<std::int64_t>(low & 0xFFFFFFFF),
                                 static_cast<std::int64_t>((low >> 32) + (high & 0xFFFFFFFF)),
                                 static_cast<std::int64_t>(high >> 32)};
  for (int i = 0; i < 3; ++i) {
    digits_[static_cast<std::size_t>(position / 32 + i)] += term < 0 ? -parts[i] : parts[i];
  }
  if (++pending_ == kCarryEvery) carry();
}

void ExactSum::carry() {
  // 2^0 is digit 34; the whole numbers go in as two digits.
  digits_[kLowest / 32] += whole_ & 0xFFFFFFFF;
  digits_[kLowest / 32 + 1] += whole_ >> 32;
  whole_ = 0;
  std::int64_t over = 0;
  for (int d = 0; d < kDigits - 1; ++d) {
    std::int64_t& digit = digits_[static_cast<std::size_t>(d)];
    digit += over;
    over = digit >> 32;  // rounds down, so every digit but the last ends in 0 to 2^32 - 1
    digit &= 0xFFFFFFFF;
  }
  digits_[kDigits - 1] += over;
  pending_ = 0;
}

void ExactSum::merge(const ExactSum& other) {
  ExactSum carried = other;
  carried.carry();
  carry();
  for (std::size_t d = 0; d < digits_.size(); ++d) digits_[d] += carried.digits_[d];
  carry();
}

double ExactSum::round() const {
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.digits_[kDigits - 1] < 0;
  if (negative) {
    for (std::int64_t& digit : sum.digits_) digit = -digit;
    sum.carry();
  }
  int top = kDigits - 1;
  while (top >= 0 && sum.digits_[static_cast<std::size_t>(top)] == 0) --top;
  if (top < 0) return 0.0;
  // Takes the highest 64 bits, with a sticky last bit for all lower ones, then rounds once to 53.
  const auto digit = [&sum](int d) {
    return d < 0 ? std::uint64_t{0}
                 : static_cast<std::uint64_t>(sum.digits_[static_cast<std::size_t>(d)]);
  };
  const int zeros = __builtin_clzll(digit(top)) - 32;
  std::uint64_t head = (digit(top) << 32 | digit(top - 1)) << zeros;
  if (zeros > 0) head |= digit(top - 2) >> (32 - zeros);
  bool sticky = (digit(top - 2) << zeros & 0xFFFFFFFF) != 0;
  for (int d = top - 3; d >= 0 && !sticky; --d) sticky = digit(d) != 0;
  if (sticky) head |= 1;
  // The exponent of head's last bit; conversion of a 64-bit integer rounds once, and scaling is
  // exact for all but subnormal results.
  const int exponent = 32 * (top - 1) - kLowest - zeros;
  const double rounded = std::ldexp(static_cast<double>(head), exponent);
  return negative ? -rounded : rounded;
}

}  // namespace petlab::metrics
